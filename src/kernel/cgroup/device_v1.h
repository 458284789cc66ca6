// DeviceV1: the devices controller of cgroup v1.
#pragma once

#include "core/base/result.h"
#include "core/device/v1_list.h"
#include "core/device/v1_plan.h"
#include "kernel/cgroup/cgroup.h"

namespace hf::kernel {

Result<device::V1List> read_v1_list(const Cgroup& cgroup);
Result<void> write_v1(const Cgroup& cgroup, const device::CgroupWrite& write);

// Does a root cgroup that allows all devices by default refuse some nevertheless? The kernel does not list such
// exceptions, but it grants a child nothing that its parent refuses even in part. A scratch child cgroup that asks for
// everything therefore shows whether there are any.
Result<bool> root_refuses_some(const Cgroup& root);
// Removes the scratch cgroups of processes that were killed.
void remove_stale_scratch_cgroups(const Host& host);
bool is_scratch_cgroup(const Cgroup& cgroup);

}  // namespace hf::kernel
