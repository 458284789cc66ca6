// RunMode: whether a plan is only shown or also carried out.
#pragma once

#include <cstdint>

namespace hf {

enum class RunMode : std::uint8_t { dry_run, carry_out };

inline RunMode run_mode(bool is_dry_run) { return is_dry_run ? RunMode::dry_run : RunMode::carry_out; }

}  // namespace hf
