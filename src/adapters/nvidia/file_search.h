// FileSearch: how the driver's files are found, folder by folder.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "adapters/nvidia/files.h"
#include "kernel/fd.h"

namespace hf::nvidia {

// A folder that holds libraries of the driver.
struct LibraryFolder {
  std::string path;  // without links
  FileKind kind = FileKind::library;
};

// Where the libraries of this version lie: the usual folders, and if there are none, those the loader knows.
std::vector<LibraryFolder> find_library_folders(int root, const std::string& version);
// The version of the libraries there are, "" for none; for a node that cannot tell the module's.
std::string find_library_version(int root);

void add_libraries(DriverFiles& driver, int root, const LibraryFolder& folder);
void add_known_links(DriverFiles& driver);
void add_binaries(DriverFiles& driver, int root);
void add_firmware(DriverFiles& driver, int root);
void add_sockets(DriverFiles& driver, int root);
void add_configs(DriverFiles& driver, int root);
void add_display_modules(DriverFiles& driver, int root);

}  // namespace hf::nvidia
