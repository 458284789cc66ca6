// CgroupWords: what the path of a cgroup tells of the container in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/container/container.h"

namespace hf::container {

struct CgroupWords {
  std::string id;
  std::string engine;   // "" where the path does not tell
  std::string pod_uid;  // "" outside pods
  CgroupDriver driver = CgroupDriver::cgroupfs;
  std::string scope;   // "docker-….scope"
  std::string cgroup;  // the path up to the container's own cgroup
};

// Of the innermost container the path names; absent where it names none.
std::optional<CgroupWords> read_cgroup_words(std::string_view path);

// The cgroup that linux.cgroupsPath of a bundle names: a path, or systemd's "slice:prefix:name". "" for a relative
// path.
std::string cgroup_named_by(std::string_view cgroups_path);

}  // namespace hf::container
