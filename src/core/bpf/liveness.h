// Liveness: which registers a program may still read from an instruction on.
#pragma once

#include <cstdint>
#include <vector>

#include "core/bpf/instruction.h"

namespace hf::bpf {

using RegisterMask = std::uint16_t;  // bit n is register n

// For each instruction. Programs with functions of their own are not followed: all registers count as read.
std::vector<RegisterMask> live_registers(const Code& code);

}  // namespace hf::bpf
