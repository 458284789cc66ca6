// CgroupPath: where a cgroup lies in its hierarchy, and what /proc says about where a process and the hierarchies are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/strong_id.h"

namespace hf::container {

enum class Hierarchy : std::uint8_t { v1, v2 };  // the devices controller of cgroup v1, or the unified one

using CgroupId = StrongId<struct CgroupIdTag, std::uint64_t>;  // the inode of its directory: an identity, unlike a path
using Pid = StrongId<struct PidTag, std::int32_t>;

struct CgroupPath {
  std::string text = "/";  // absolute within the hierarchy, no "." or ".." in it

  [[nodiscard]] bool is_root() const { return text == "/"; }
  [[nodiscard]] CgroupPath parent() const;  // the root's is the root
  [[nodiscard]] CgroupPath child(std::string_view name) const;
  friend bool operator==(const CgroupPath&, const CgroupPath&) = default;
};

Result<CgroupPath> parse_cgroup_path(std::string_view text);
unsigned depth_of(const CgroupPath& path);  // 0 for the root
// The same cgroup, or one below it. "/pod/cc" is not within "/pod/c".
bool is_within(std::string_view path, std::string_view ancestor);

struct CgroupMount {
  Hierarchy hierarchy = Hierarchy::v2;
  std::string point;  // where it is mounted
  std::string root;   // which cgroup is seen there; "/" on a host
};

// The cgroup mounts of /proc/PID/mountinfo that decide about devices, those of whole hierarchies first.
std::vector<CgroupMount> parse_cgroup_mounts(std::string_view mountinfo);

// The cgroups of a process, from /proc/PID/cgroup. Absent where the hierarchy is not there.
struct Membership {
  std::optional<std::string> v1;
  std::optional<std::string> v2;
};
Membership parse_membership(std::string_view proc_cgroup);

// The path in a line of /proc/PID/cgroup ("5:devices:/a:b"): all behind the second colon.
std::string path_in_line(std::string_view line);

// The path below a mount of a cgroup with this path in its hierarchy; fails where the mount does not show it.
Result<CgroupPath> path_below(const CgroupMount& mount, std::string_view path_in_hierarchy);

}  // namespace hf::container
