// Files: the files that NVIDIA's driver has installed on the host, and those of them that a container needs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "adapters/nvidia/library_identity.h"
#include "adapters/nvidia/request.h"
#include "core/base/result.h"
#include "core/container/entitlement/edits.h"
#include "kernel/files/host.h"

namespace hf::nvidia {

enum class FileKind : std::uint8_t { library, library32, binary, firmware, socket, config, other };

struct DriverFile {
  std::string path;  // on the host, with symlinks resolved, relative to the driver's root
  FileKind kind = FileKind::other;
  std::string capability;      // the driver capability that needs it; "" for always. A library32 needs compat32 as well
  std::string container_path;  // "" where it equals `path`

  [[nodiscard]] const std::string& path_in_container() const { return container_path.empty() ? path : container_path; }
  friend bool operator==(const DriverFile&, const DriverFile&) = default;
};

struct DriverLink {
  std::string target;
  std::string path;     // in the container
  std::string library;  // the file it finally resolves to: a container without that file does not get the symlink

  friend bool operator==(const DriverLink&, const DriverLink&) = default;
};

struct DriverFiles {
  std::string version;
  std::string root;  // "" for the host's root; else where a driver that was installed by a container lies on the host
  std::vector<DriverFile> files;
  std::vector<DriverLink> links;
  std::vector<std::string> library_directories;  // in the container
  // Of its libraries, by their paths on the host. Only read_cached_driver() reads them.
  std::map<std::string, LibraryIdentity> identities;
};

// Fails where there is no driver, or no library of the kernel module's version: a container that is started anyway
// would not find its GPU.
Result<DriverFiles> read_driver_files(const kernel::Host& host, const std::string& driver_root = {});

struct HookSettings {
  std::string path = "/usr/bin/holdfast-runtime";  // "": no hook
};

// The files that these capabilities ask for. Device nodes are not among the edits.
container::ContainerEdits edits_of(const DriverFiles& driver, const DriverCapabilities& capabilities,
                                   const HookSettings& hook = {});

}  // namespace hf::nvidia
