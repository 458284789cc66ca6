// Shapes: the programs that other producers generate from rules: one rule after the other.
#pragma once

#include "core/bpf/instruction.h"
#include "core/device/rule.h"

namespace hf::bench {

bpf::Code like_runc(const device::RuleSet& rules);     // kind, access, major, minor; each rule ends the program
bpf::Code like_crun(const device::RuleSet& rules);     // the same with 64-bit moves, last rule first
bpf::Code like_systemd(const device::RuleSet& rules);  // access first; all rules jump to one end

}  // namespace hf::bench
