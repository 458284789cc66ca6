// MinimalContainer: a program in its own namespaces, cgroups and root directory, without a container engine.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/cgroup/cgroup_path.h"
#include "kernel/cgroup/cgroup.h"

namespace hf::kernel {

// A file of the host that is bind mounted at this path in the container.
struct BoundFile {
  enum class Use : std::uint8_t { read_only, writable };

  std::string source;
  std::string path;
  Use use = Use::read_only;
};

struct MinimalContainer {
  std::vector<std::string> arguments;  // the first is the program's path in the container
  std::vector<BoundFile> files;
  std::string root;                    // an empty directory; mounts on it are visible in the container only
  std::vector<const Cgroup*> cgroups;  // the cgroups that it joins
  int input = -1;                      // its standard input
};

// Returns the first process of the container, a child that ends with this process. The container has /proc, and a /dev
// with null, zero, full, random and urandom.
Result<container::Pid> start_minimal_container(const MinimalContainer& wanted);

// The files that this program consists of (itself, the libraries it has loaded, and their loader), and the arguments
// that start it when these files are in `directory`.
struct OwnProgram {
  std::vector<BoundFile> files;
  std::vector<std::string> arguments;
};
Result<OwnProgram> own_program_in(const std::string& directory);

}  // namespace hf::kernel
