#include "core/base/text.h"
#include "kernel/cgroup/cgroup.h"

namespace hf::kernel {
namespace {

using container::CgroupPath;
using container::Hierarchy;

// The path of a directory below the mount of a hierarchy; absent where the directory is elsewhere.
std::optional<std::string> below_mount(const Host& host, Hierarchy hierarchy, const std::string& directory) {
  const std::optional<container::CgroupMount>& mount = host.mount_of(hierarchy);
  if (!mount || !directory.starts_with(mount->point)) {
    return std::nullopt;
  }
  const std::string rest = directory.substr(mount->point.size());
  const bool is_below = rest.empty() || rest.starts_with('/') || mount->point == "/";
  return is_below ? std::optional(rest.starts_with('/') ? rest : "/" + rest) : std::nullopt;
}

// One hierarchy may be mounted inside the other's directory, so the longer mount point wins.
std::optional<Hierarchy> hierarchy_mounted_over(const Host& host, const std::string& directory) {
  std::optional<Hierarchy> found;
  for (const Hierarchy hierarchy : {Hierarchy::v1, Hierarchy::v2}) {
    if (!below_mount(host, hierarchy, directory)) {
      continue;
    }
    if (!found || host.mount_of(hierarchy)->point.size() > host.mount_of(*found)->point.size()) {
      found = hierarchy;
    }
  }
  return found;
}

}  // namespace

Result<CgroupsOfProcess> open_cgroups_at(const Host& host, const std::string& directory) {
  CgroupsOfProcess cgroups;
  const auto slot_of = [&cgroups](Hierarchy hierarchy) -> std::optional<Cgroup>& {
    return hierarchy == Hierarchy::v1 ? cgroups.v1 : cgroups.v2;
  };
  if (const std::optional<Hierarchy> hierarchy = hierarchy_mounted_over(host, directory)) {
    const CgroupPath path = TRY(container::parse_cgroup_path(*below_mount(host, *hierarchy, directory)));
    slot_of(*hierarchy) = TRY(open_cgroup(host, *hierarchy, path));
    return cgroups;
  }
  const CgroupPath path = TRY(container::parse_cgroup_path(directory));
  for (const Hierarchy hierarchy : {Hierarchy::v1, Hierarchy::v2}) {
    if (!host.mount_of(hierarchy)) {
      continue;
    }
    Result<Cgroup> opened = open_cgroup(host, hierarchy, path);
    if (opened) {
      slot_of(hierarchy) = *std::move(opened);
    } else if (opened.error().code != std::errc::no_such_file_or_directory) {
      return std::unexpected(opened.error());
    }
  }
  if (!cgroups.v1 && !cgroups.v2) {
    return fail(std::errc::no_such_file_or_directory, "open cgroup " + quote(directory) + ": no such cgroup");
  }
  return cgroups;
}

}  // namespace hf::kernel
