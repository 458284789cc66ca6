// Cgroup: one cgroup, held by its directory.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/container/cgroup_path.h"
#include "kernel/fd.h"
#include "kernel/host.h"
#include "kernel/process.h"

namespace hf::kernel {

// A moment later the same path may name another cgroup: the descriptor stays with this one.
struct Cgroup {
  Fd directory;
  container::CgroupId id;
  container::Hierarchy hierarchy = container::Hierarchy::v2;
  container::CgroupPath path;
  std::string where;  // the directory, for people
};

Result<Cgroup> open_cgroup(const Host& host, container::Hierarchy hierarchy, const container::CgroupPath& path);

// The same cgroup, held by a descriptor of its own.
Cgroup duplicate(const Cgroup& cgroup);

// The cgroups of a process that decide about devices.
struct CgroupsOfProcess {
  std::optional<Cgroup> v1;
  std::optional<Cgroup> v2;
};
Result<CgroupsOfProcess> open_cgroups_of(const Host& host, container::Pid pid);
Result<CgroupsOfProcess> open_cgroups_of(const Host& host, const ProcessHandle& process);

// A cgroup by the directory a person names, or by its path in either hierarchy: then it may be in both.
Result<CgroupsOfProcess> open_cgroups_at(const Host& host, const std::string& directory);

// Every cgroup of a hierarchy below this one and itself, parents first. Those that vanish meanwhile are passed over,
// and so are those that lie more than 256 levels deep, which are counted. An error of `visit` ends the walk.
Result<std::size_t> walk(const Cgroup& start, const std::function<Result<void>(const Cgroup&)>& visit);

// May a user other than root make cgroups in it, under names of its choice?
bool is_users(const Cgroup& cgroup);

// The one above, through the directory held: not of the root.
Result<Cgroup> open_parent(const Cgroup& cgroup);

Result<Cgroup> open_root(const Host& host, container::Hierarchy hierarchy);

}  // namespace hf::kernel
