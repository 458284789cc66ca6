// Cgroup: one cgroup, held open by a descriptor of its directory.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/container/cgroup/cgroup_path.h"
#include "kernel/files/fd.h"
#include "kernel/files/host.h"
#include "kernel/process/process.h"

namespace hf::kernel {

// The same path may name another cgroup a moment later; the descriptor always refers to this one.
struct Cgroup {
  Fd directory;
  container::CgroupId id;
  container::Hierarchy hierarchy = container::Hierarchy::v2;
  container::CgroupPath path;
  std::string where;  // the directory, for messages
};

Result<Cgroup> open_cgroup(const Host& host, container::Hierarchy hierarchy, const container::CgroupPath& path);

// The same cgroup with a second descriptor.
Cgroup duplicate(const Cgroup& cgroup);

// The cgroups of a process that decide about devices.
struct CgroupsOfProcess {
  std::optional<Cgroup> v1;
  std::optional<Cgroup> v2;
};
CgroupsOfProcess duplicate(const CgroupsOfProcess& cgroups);
Result<CgroupsOfProcess> open_cgroups_of(const Host& host, container::Pid pid);
Result<CgroupsOfProcess> open_cgroups_of(const Host& host, const ProcessHandle& process);

// Opens a cgroup by its directory, or by its path within a hierarchy, which may exist in both hierarchies.
Result<CgroupsOfProcess> open_cgroups_at(const Host& host, const std::string& directory);

// Visits this cgroup and every cgroup below it, parents first. Cgroups that vanish meanwhile are skipped. Those more
// than 256 levels deep are skipped too, and their number is returned. An error of `visit` ends the walk.
Result<std::size_t> walk(const Cgroup& start, const std::function<Result<void>(const Cgroup&)>& visit);

// May a user other than root create cgroups in it, under names of that user's choice?
bool is_owned_by_user(const Cgroup& cgroup);

// Opens the parent through the directory descriptor. The cgroup must not be the root.
Result<Cgroup> open_parent(const Cgroup& cgroup);

// Moves the calling process into the cgroup, by plain system calls only, as the child of a fork needs it. Returns
// errno.
int join_by_syscalls(const Cgroup& cgroup);

Result<Cgroup> open_root(const Host& host, container::Hierarchy hierarchy);

}  // namespace hf::kernel
