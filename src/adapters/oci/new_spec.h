// NewSpec: a config.json for a container of ours.
#pragma once

#include <string>
#include <vector>

namespace hf::oci {

struct NewMount {
  std::string source;  // a file of the host
  std::string destination;
  bool is_writable = false;
};

struct NewSpec {
  std::vector<std::string> words;  // the program's path inside first
  std::vector<NewMount> mounts;    // beside /proc and /dev
  std::string cgroups_path;
};

// Root in namespaces for mounts, processes, IPC and the host's name; no device but those that every container has. The
// root is the folder "rootfs" of the bundle.
std::string write_spec(const NewSpec& spec);

}  // namespace hf::oci
