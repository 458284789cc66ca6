// Cpuset: the CPUs a cgroup confines its processes to, even where a process has restricted itself further.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/container/cgroup/cgroup_path.h"
#include "core/cpu/cpu_set.h"
#include "kernel/files/host.h"

namespace hf::kernel {

// Reads the cpuset of the cgroup named `own` that the process is in or below, on v1 or v2. Where that cgroup has no
// cpuset, the nearest one above it counts.
Result<cpu::CpuSet> read_cpuset(const Host& host, container::Pid pid, const std::string& own);

}  // namespace hf::kernel
