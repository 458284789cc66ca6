#include "core/container/cgroup/cgroup_path.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "core/base/text.h"
#include "core/container/cgroup/mount.h"

namespace hf::container {
namespace {

// Returns whether a later mount covers this mount point, or a directory above it.
bool is_covered(std::string_view point, std::span<const std::string_view> later_lines) {
  return std::ranges::any_of(later_lines, [point](std::string_view line) {
    const std::vector<std::string_view> fields = split_fields(line);
    const std::string_view over = fields.size() > 5 ? fields[4] : std::string_view();
    return !over.empty() && point.starts_with(over) &&
           (point.size() == over.size() || over == "/" || point[over.size()] == '/');
  });
}

}  // namespace

CgroupPath CgroupPath::parent() const {
  const std::size_t slash = text.rfind('/');
  return {slash == 0 || slash == std::string::npos ? "/" : text.substr(0, slash)};
}

CgroupPath CgroupPath::child(std::string_view name) const {
  return {(is_root() ? "/" : text + "/") + std::string(name)};
}

unsigned depth_of(const CgroupPath& path) { return path.is_root() ? 0 : unsigned(std::ranges::count(path.text, '/')); }

bool is_within(std::string_view path, std::string_view ancestor) {
  return ancestor == "/" ||
         (path.starts_with(ancestor) && (path.size() == ancestor.size() || path[ancestor.size()] == '/'));
}

Result<CgroupPath> parse_cgroup_path(std::string_view text) {
  if (!text.starts_with('/')) {
    return fail(std::errc::invalid_argument, "cgroup path " + quote(text) + ": must begin with /");
  }
  CgroupPath path;
  for (const std::string_view part : split(text, '/')) {
    if (part == "." || part == "..") {
      return fail(std::errc::invalid_argument, "cgroup path " + quote(text) + ": '.' and '..' are not allowed");
    }
    path = part.empty() ? path : path.child(part);
  }
  return path;
}

std::vector<CgroupMount> parse_cgroup_mounts(std::string_view mountinfo) {
  std::vector<CgroupMount> mounts;
  std::vector<CgroupMount> partial;
  const std::vector<std::string_view> lines = split(mountinfo, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::string_view> fields = split_fields(lines[i]);
    const auto dash = std::ranges::find(fields, "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 4) {
      continue;
    }
    const bool is_v2 = dash[1] == "cgroup2";
    const bool is_v1_devices = dash[1] == "cgroup" && list_contains(dash[3], "devices");
    if ((is_v2 || is_v1_devices) && !is_covered(fields[4], std::span(lines).subspan(i + 1))) {
      CgroupMount mount{is_v2 ? Hierarchy::v2 : Hierarchy::v1, unescape_mountinfo(fields[4]),
                        unescape_mountinfo(fields[3])};
      (mount.root == "/" ? mounts : partial).push_back(std::move(mount));
    }
  }
  mounts.insert(mounts.end(), partial.begin(), partial.end());
  return mounts;
}

Membership parse_membership(std::string_view proc_cgroup) {
  Membership membership;
  for (const std::string_view line : split(proc_cgroup, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) {
      continue;
    }
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (line.starts_with("0::")) {
      membership.v2 = std::string(line.substr(second + 1));
    } else if (list_contains(controllers, "devices")) {
      membership.v1 = std::string(line.substr(second + 1));
    }
  }
  return membership;
}

std::string path_in_line(std::string_view line) {
  const std::size_t first = line.find(':');
  const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
  return second == std::string_view::npos ? std::string() : std::string(line.substr(second + 1));
}

Result<CgroupPath> path_below(const CgroupMount& mount, std::string_view path_in_hierarchy) {
  if (mount.root == "/") {
    return parse_cgroup_path(path_in_hierarchy);
  }
  const bool inside = path_in_hierarchy.starts_with(mount.root) &&
                      (path_in_hierarchy.size() == mount.root.size() || path_in_hierarchy[mount.root.size()] == '/');
  if (!inside) {
    return fail(std::errc::no_such_file_or_directory,
                "cgroup " + quote(path_in_hierarchy) + ": not below " + mount.point + ", which shows " + mount.root);
  }
  const std::string_view rest = path_in_hierarchy.substr(mount.root.size());
  return parse_cgroup_path(rest.empty() ? "/" : rest);
}

}  // namespace hf::container
