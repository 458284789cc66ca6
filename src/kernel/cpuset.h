// Cpuset: the CPUs a cgroup confines its processes to, whatever they narrowed themselves to inside.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/container/cgroup_path.h"
#include "core/cpu/cpu_set.h"
#include "kernel/host.h"

namespace hf::kernel {

// Of the cgroup called `own` that the process is in or below, on v1 or v2; of the next one above it with a cpuset where
// that has none.
Result<cpu::CpuSet> read_cpuset(const Host& host, container::Pid pid, const std::string& own);

}  // namespace hf::kernel
