// Observe: every gate between a cgroup's processes and a device, as the kernel has them now.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/container/gate.h"
#include "kernel/cgroup.h"
#include "kernel/filters.h"
#include "kernel/host.h"

namespace hf::kernel {

Result<container::Observed> observe(Filters& filters, const CgroupsOfProcess& cgroups);

// Only the gates of the cgroups themselves, without those above them: what can be changed, and quickly read.
Result<container::Observed> observe_own(Filters& filters, const CgroupsOfProcess& cgroups);

// One program by itself, and what it means.
Result<container::Gate> observe_program(Filters& filters, container::ProgramId id);

// Every cgroup of the node with rules of its own: v2 ones with programs, v1 ones that do not allow all by default.
struct ObservedNode {
  std::vector<container::Gate> gates;
  std::size_t hiding = 0;    // v1 cgroups below the root that allow all by default: they may hide denies
  std::size_t too_deep = 0;  // cgroups that lie too deep to be looked at, with all below them
};
Result<ObservedNode> observe_node(const Host& host, Filters& filters);

}  // namespace hf::kernel
