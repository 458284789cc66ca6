// Files: what NVIDIA's driver has put into the node's file system, and what a container needs of it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/edits.h"
#include "kernel/host.h"

namespace hf::nvidia {

enum class FileKind : std::uint8_t { library, library32, binary, firmware, socket, config, other };

struct DriverFile {
  std::string path;  // on the host, without links, from the driver's root
  FileKind kind = FileKind::other;
  std::string capability;  // the word that wants it; "" for always. A library32 needs compat32 as well
  std::string inside;      // where the container has it; "" where it is the same

  [[nodiscard]] const std::string& in_container() const { return inside.empty() ? path : inside; }
  friend bool operator==(const DriverFile&, const DriverFile&) = default;
};

struct DriverLink {
  std::string target;
  std::string path;     // in the container
  std::string library;  // the file it leads to in the end: without that one, the link is not wanted

  friend bool operator==(const DriverLink&, const DriverLink&) = default;
};

struct DriverFiles {
  std::string version;
  std::string root;  // where the driver lies on the host, as a driver of a container's does; "" for the host's own root
  std::vector<DriverFile> files;
  std::vector<DriverLink> links;
  std::vector<std::string> library_folders;  // in the container
};

// Fails where there is no driver, or no library of the version that the kernel's module has: a container that starts
// all the same would not find its GPU.
Result<DriverFiles> read_driver_files(const kernel::Host& host, const std::string& driver_root = {});

struct HookSettings {
  std::string path = "/usr/bin/holdfast-runtime";  // "": no hook
};

// The files that these words of NVIDIA_DRIVER_CAPABILITIES ask for, among them perhaps "all"; none is
// "utility,compute". Device nodes are not among the edits.
container::ContainerEdits edits_of(const DriverFiles& driver, const std::set<std::string>& capabilities,
                                   const HookSettings& hook = {});

}  // namespace hf::nvidia
