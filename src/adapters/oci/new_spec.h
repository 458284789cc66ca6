// NewSpec: a config.json for a container that holdfast starts.
#pragma once

#include <string>
#include <vector>

namespace hf::oci {

struct NewMount {
  std::string source;  // on the host
  std::string destination;
  bool is_writable = false;
};

struct NewSpec {
  std::vector<std::string> arguments;  // starts with the program's path in the container
  std::vector<NewMount> mounts;        // besides /proc and /dev
  std::string cgroups_path;
};

// The container runs as root in its own mount, pid, ipc and uts namespaces, with only the devices that every container
// has. Its file system is the directory "rootfs" of the bundle.
std::string render_spec(const NewSpec& spec);

}  // namespace hf::oci
