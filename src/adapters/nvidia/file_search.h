// FileSearch: finds the driver's files, directory by directory.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "adapters/nvidia/files.h"
#include "kernel/files/fd.h"

namespace hf::nvidia {

// A directory that holds libraries of the driver.
struct LibraryDirectory {
  std::string path;  // with symlinks resolved
  FileKind kind = FileKind::library;
};

// The directories with libraries of this version: among the default directories, or if none of those has 64-bit
// libraries, among those in the dynamic loader's cache as well.
std::vector<LibraryDirectory> find_library_directories(int root, const std::string& version);
// The version of the installed libraries, "" for none; used where the kernel module does not report its version.
std::string find_library_version(int root);

void add_libraries(DriverFiles& driver, int root, const LibraryDirectory& directory);
void add_known_links(DriverFiles& driver);
void add_binaries(DriverFiles& driver, int root);
void add_firmware(DriverFiles& driver, int root);
void add_sockets(DriverFiles& driver, int root);
void add_configs(DriverFiles& driver, int root);
void add_display_modules(DriverFiles& driver, int root);

}  // namespace hf::nvidia
