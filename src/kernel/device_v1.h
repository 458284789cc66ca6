// DeviceV1: the devices controller of cgroup v1.
#pragma once

#include "core/base/result.h"
#include "core/device/v1_list.h"
#include "core/device/v1_plan.h"
#include "kernel/cgroup.h"

namespace hf::kernel {

Result<device::V1List> read_v1_list(const Cgroup& cgroup);
Result<void> write_v1(const Cgroup& cgroup, const device::V1Write& write);

// Does a root cgroup that allows all devices by default refuse some all the same? The kernel lists no such exceptions,
// but grants a child nothing that its parent refuses even in part: a child made for the question, asking for
// everything, tells.
Result<bool> root_refuses_some(const Cgroup& root);
// Those that somebody who was killed has left.
void remove_old_scratches(const Host& host);
bool is_scratch(const Cgroup& cgroup);  // a child made for such a question

}  // namespace hf::kernel
