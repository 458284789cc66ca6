// Producer: which software wrote a device filter, by its name or by the shape of its code.
#pragma once

#include <string>
#include <string_view>

#include "core/bpf/instruction.h"

namespace hf::bpf {

inline constexpr std::string_view kOurName = "holdfast";

// "systemd", "runc", "crun", "lxc", "libnvidia-container", "holdfast", or "" where it is not known.
std::string producer_of(const Code& code, std::string_view program_name);

}  // namespace hf::bpf
