// Observe: every gate between a cgroup's processes and a device, in its current state in the kernel.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/container/gate/gate.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/filters.h"
#include "kernel/files/host.h"

namespace hf::kernel {

Result<container::Observed> observe(Filters& filters, const CgroupsOfProcess& cgroups);

// One program on its own, with its meaning.
Result<container::Gate> observe_program(Filters& filters, container::ProgramId id);

// Every cgroup of the host with rules of its own: v2 cgroups with programs, v1 cgroups that do not allow all by
// default.
struct ObservedHost {
  std::vector<container::Gate> gates;
  std::size_t hiding = 0;    // v1 cgroups below the root that allow all by default: they may hide denies
  std::size_t too_deep = 0;  // cgroups that are nested too deep to be visited, with all below them
};
Result<ObservedHost> observe_host(const Host& host, Filters& filters);

}  // namespace hf::kernel
