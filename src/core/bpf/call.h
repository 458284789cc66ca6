// Call: what a call out of the program can do to the verdict.
#pragma once

#include <cstdint>
#include <string>

#include "core/bpf/instruction.h"

namespace hf::bpf {

// What the first argument register holds when the call is made.
enum class FirstArgument : std::uint8_t { nothing, number, address };

// none:         the call returns an unknown number and does nothing else to the verdict.
// reads_error:  bpf_get_retval: returns the error that the programs before this one have left.
// sets_error:   bpf_set_retval: replaces that error by its argument; 0 lets a refused request through.
// unclear:      it may do anything, `why` says how.
struct CallEffect {
  enum class Kind : std::uint8_t { none, reads_error, sets_error, unclear };

  Kind kind = Kind::none;
  std::string why;
};

// Programs as written carry helper ids. A program read back carries only the distance to the function, whose name the
// caller may have; a call without a name counts as harmless if it cannot be bpf_set_retval, which takes a number.
CallEffect effect_of(const Instruction& call, FirstArgument argument, const CallNames& names);

// Whether a program could let through what a program before it has refused. False only where none of its calls can.
bool may_override(const Code& code, const CallNames& names);

// Kernel: the error of a request that a program refuses by returning 0.
inline constexpr std::int32_t kRefused = -1;  // -EPERM

}  // namespace hf::bpf
