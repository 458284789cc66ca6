// ParsedCgroupName: what the path of a cgroup says about the container in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/container/container.h"

namespace hf::container {

struct ParsedCgroupName {
  std::string id;
  std::string engine;   // "" where the path does not say
  std::string pod_uid;  // "" outside pods
  CgroupDriver driver = CgroupDriver::cgroupfs;
  std::string scope;   // "docker-….scope"
  std::string cgroup;  // the path up to the container's own cgroup
};

// Describes the innermost container that the path names; absent where it names none.
std::optional<ParsedCgroupName> parse_cgroup_name(std::string_view path);

// Whether the path is that of a Guaranteed pod, or of none: kubelet puts the pods of the other QoS classes below
// cgroups that are named after them.
bool is_guaranteed(std::string_view path);

// The uid of the pod whose own cgroup this is, made by kubelet; "" where it is none.
std::string pod_uid_in(std::string_view path);

// Returns the cgroup that linux.cgroupsPath of a bundle names: a path, or systemd's "slice:prefix:name". "" for a
// relative path.
std::string cgroup_named_by(std::string_view cgroups_path);

// The cgroup that CRI names as the parent of a pod's: a path, or a slice of systemd. "" for any other text.
std::string cgroup_of_parent(std::string_view parent);

}  // namespace hf::container
