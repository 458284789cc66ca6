// Attack: what takes a container's GPU away, done by a process of its own, as in life.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "kernel/command.h"
#include "services/demo/patient.h"

namespace hf::demo {

struct Attack {
  std::string words;  // what it is, for people
  kernel::Command command;
};

// What this container can lose its GPU to, each kind once.
std::vector<Attack> attacks_on(const Patient& patient, const Gpu& gpu);

// The attacking process itself: "v1 CGROUP RULE…", "replace CGROUP PROGRAM" or "beside CGROUP PROGRAM".
Result<void> carry_out_attack(const std::vector<std::string>& words);

}  // namespace hf::demo
