// CgroupPath: the path of a cgroup in its hierarchy, and the parsers of what /proc says about cgroups and their mounts.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/strong_id.h"

namespace hf::container {

enum class Hierarchy : std::uint8_t { v1, v2 };  // v1: the hierarchy of the devices controller; v2: the unified one

using CgroupId = StrongId<struct CgroupIdTag, std::uint64_t>;  // the inode of its directory; unlike a path unique
using Pid = StrongId<struct PidTag, std::int32_t>;

struct CgroupPath {
  std::string text = "/";  // absolute within the hierarchy, no "." or ".." in it

  [[nodiscard]] bool is_root() const { return text == "/"; }
  [[nodiscard]] CgroupPath parent() const;  // the parent of the root is the root
  [[nodiscard]] CgroupPath child(std::string_view name) const;
  friend auto operator<=>(const CgroupPath&, const CgroupPath&) = default;
};

Result<CgroupPath> parse_cgroup_path(std::string_view text);
unsigned depth_of(const CgroupPath& path);  // 0 for the root
// True for the same cgroup and for one below it. "/pod/cc" is not within "/pod/c".
bool is_within(std::string_view path, std::string_view ancestor);

struct CgroupMount {
  Hierarchy hierarchy = Hierarchy::v2;
  std::string point;  // where it is mounted
  std::string root;   // the cgroup that is visible there; "/" on a host
};

// Returns the cgroup mounts of /proc/PID/mountinfo that decide about devices; mounts of whole hierarchies come first.
std::vector<CgroupMount> parse_cgroup_mounts(std::string_view mountinfo);

// The cgroups of a process, from /proc/PID/cgroup. Absent where the hierarchy does not exist.
struct Membership {
  std::optional<std::string> v1;
  std::optional<std::string> v2;
};
Membership parse_membership(std::string_view proc_cgroup);

// Returns the path in a line of /proc/PID/cgroup ("5:devices:/a:b"): everything after the second colon.
std::string path_in_line(std::string_view line);

// Translates a path in the hierarchy to a path below the mount; fails where the cgroup is not visible there.
Result<CgroupPath> path_below(const CgroupMount& mount, std::string_view path_in_hierarchy);

}  // namespace hf::container
