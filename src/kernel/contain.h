// Contain: a program in namespaces, cgroups and a root of its own: the least that makes a container.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/cgroup_path.h"
#include "kernel/cgroup.h"

namespace hf::kernel {

// A file of the host that is seen inside under this path.
struct BoundFile {
  enum class Use : std::uint8_t { read_only, writable };

  std::string source;
  std::string path;
  Use use = Use::read_only;
};

struct Enclosure {
  std::vector<std::string> words;  // the program's path inside first
  std::vector<BoundFile> files;
  std::string root;                    // an empty folder; what is mounted over it is seen in there only
  std::vector<const Cgroup*> cgroups;  // that it joins
  int input = -1;                      // its standard input
};

// The first process of the container, a child of ours that ends with us. It has /proc, and a /dev with null, zero,
// full, random and urandom.
Result<container::Pid> contain(const Enclosure& enclosure);

// The files a program like this one is made of: itself, the libraries it has loaded, and what loads them; and the words
// to start it with where they lie in `folder`.
struct OwnProgram {
  std::vector<BoundFile> files;
  std::vector<std::string> words;
};
Result<OwnProgram> own_program_in(const std::string& folder);

}  // namespace hf::kernel
