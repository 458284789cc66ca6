// mountinfo: a path lies on a mount over it, and no other mount fits better.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "check.h"
#include "core/base/text.h"
#include "core/container/cgroup/cgroup_path.h"
#include "core/container/cgroup/mount.h"

namespace {

using namespace hf::container;

void check_over(const std::vector<Mount>& mounts, const std::string& path) {
  const Mount* over = mount_over(mounts, path);
  if (over == nullptr) {
    return;
  }
  check(path.starts_with(over->point), "a mount over a path is at its beginning");
  const std::string_view rest = std::string_view(path).substr(over->point.size());
  check(rest.empty() || rest.starts_with('/') || over->point == "/", "a mount over a path ends where a part ends");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<Mount> mounts = parse_mountinfo(text);
  check(mounts.size() <= hf::split(text, '\n').size(), "a line is one mount at most");
  for (const Mount& mount : mounts) {
    check_over(mounts, mount.point);
    check_over(mounts, mount.point + "/x");
    check_over(mounts, mount.point + "x");
    check(mount_over(mounts, mount.point) != nullptr, "a mount point lies on a mount");
  }
  check_over(mounts, "/dev/nvidia0");
  bool partial = false;
  for (const CgroupMount& mount : parse_cgroup_mounts(text)) {
    check(!partial || mount.root != "/", "whole hierarchies come first");
    partial = mount.root != "/";
    if (const hf::Result<CgroupPath> path = path_below(mount, mount.root)) {
      check(path->is_root() || mount.root == "/", "the root of a mount is its root");
    }
    (void)path_below(mount, "/docker/x");
  }
  const Membership membership = parse_membership(text);
  (void)membership;
  check(unescape_mountinfo(text).size() <= text.size(), "unescaping makes nothing longer");
  return 0;
}
