// Attack: a change that takes a container's GPU away, made by a separate process, as on a real host.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "kernel/process/command.h"
#include "services/demo/workload.h"

namespace hf::demo {

struct Attack {
  std::string description;
  kernel::Command command;
};

// Is it attacked by its own runtime, an old runc?
bool is_attacked_by_its_runtime(const Workload& workload);

// Every kind of attack that takes the GPU from this container.
std::vector<Attack> attacks_on(const Workload& workload, const Gpu& gpu);

// On v1, where no such runc is there: this program takes each node of the GPU away.
Attack write_as_old_runc(const std::string& cgroup, const Gpu& gpu);

// Runs in the attacking process. Arguments: "v1 CGROUP RULE…", "replace CGROUP PROGRAM" or "beside CGROUP PROGRAM".
Result<void> carry_out_attack(const std::vector<std::string>& arguments);

}  // namespace hf::demo
