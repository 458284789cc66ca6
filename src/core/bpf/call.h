// Call: what a call out of the program can do to its verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/bpf/instruction.h"

namespace hf::bpf {

// What the first argument register holds when the call is made.
enum class FirstArgument : std::uint8_t { nothing, number, address };

// Nullopt: the call gives back a number nobody can foresee and does nothing else to the verdict. Otherwise why it may.
//
// Two helpers reach past the return value: bpf_tail_call runs another program instead, bpf_set_retval refuses (since
// kernel 5.18). Of a program read back only the function's distance is known, unless the caller has its name: then it
// counts as harmless if it cannot be bpf_set_retval, which takes a number.
std::optional<std::string> can_change_verdict(const Instruction& call, FirstArgument argument, const CallNames& names);

}  // namespace hf::bpf
