#include "kernel/container/container_handle.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>

namespace hf::kernel {
namespace {

using container::CgroupPath;
using container::Container;
using container::Hierarchy;

std::unexpected<Error> ended(container::Pid pid, const std::string& why) {
  return fail(std::errc::no_such_process, "find process " + std::to_string(pid.value) + ": " + why);
}

}  // namespace

Result<ContainerHandle> ContainerHandle::open(const Host& host, const Container& container) {
  ContainerHandle handle;
  handle.process_ = TRY(hold_process(host, container.init));
  handle.started_ticks_ = container.started_ticks;
  handle.mount_namespace_ = container.mount_namespace;
  handle.lines_ = read_cgroup_lines(handle.process_);
  CgroupsOfProcess actual = TRY(open_cgroups_of(host, handle.process_));
  TRY(handle.open_own(host, container));
  const bool is_own = !handle.own_.empty() && key_of(*handle.own_.back()) == key_of(actual);
  handle.actual_ = is_own ? handle.own_.back() : std::make_shared<const CgroupsOfProcess>(std::move(actual));
  TRY(handle.check());
  return handle;
}

// Its own cgroup comes first, then the one below that its process has moved to, where that differs. On v1 only the list
// of the latter counts, on v2 the programs of both count.
Result<void> ContainerHandle::open_own(const Host& host, const Container& container) {
  const container::Membership membership = container::parse_membership(lines_);
  CgroupsOfProcess outer;
  CgroupsOfProcess inner;
  const auto add = [&](Hierarchy hierarchy, const std::optional<std::string>& path) -> Result<void> {
    const std::optional<std::string> own = path ? own_cgroup_in(container, *path) : std::nullopt;
    const std::optional<container::CgroupMount>& mount = host.mount_of(hierarchy);
    if (!own || !mount) {
      return {};
    }
    const bool is_v1 = hierarchy == Hierarchy::v1;
    const CgroupPath inside = TRY(path_below(*mount, *path));
    (is_v1 ? inner.v1 : inner.v2) = TRY(open_cgroup(host, hierarchy, inside));
    if (*own != *path) {
      (is_v1 ? outer.v1 : outer.v2) = TRY(open_cgroup(host, hierarchy, TRY(path_below(*mount, *own))));
    }
    return {};
  };
  TRY(add(Hierarchy::v1, membership.v1));
  TRY(add(Hierarchy::v2, membership.v2));
  for (CgroupsOfProcess* cgroups : {&outer, &inner}) {
    if (cgroups->v1 || cgroups->v2) {
      own_.push_back(std::make_shared<const CgroupsOfProcess>(std::move(*cgroups)));
    }
  }
  return {};
}

Result<void> ContainerHandle::check() const {
  const Result<Process> now = read_process(process_);
  if (!now || now->has_ended || now->started_at != started_ticks_) {
    return ended(process_.pid, "the container has ended");
  }
  if (mount_namespace_ != 0 && read_namespace(process_, "mnt") != mount_namespace_) {
    return ended(process_.pid, "it is in another mount namespace now");
  }
  return read_cgroup_lines(process_) == lines_ ? Result<void>() : ended(process_.pid, "it is in other cgroups now");
}

Result<Fd> ContainerHandle::open_mount_namespace() const {
  Fd mounts(::openat(process_.directory.get(), "ns/mnt", O_RDONLY | O_CLOEXEC));
  if (!mounts) {
    return fail_errno(errno, "open the mount namespace of process " + std::to_string(process_.pid.value));
  }
  return mounts;
}

Result<Fd> ContainerHandle::open_root() const {
  Fd root(::openat(process_.directory.get(), "root", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) {
    return fail_errno(errno, "open the root of process " + std::to_string(process_.pid.value));
  }
  return root;
}

}  // namespace hf::kernel
