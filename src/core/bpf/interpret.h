// Interpret: run a device filter on one request, as the kernel would.
#pragma once

#include "core/bpf/instruction.h"
#include "core/device/device.h"

namespace hf::bpf {

enum class Verdict : std::uint8_t { deny, allow };

// Opaque where the verdict depends on something outside the program and the request: a map, a helper's answer, memory
// nobody wrote. Such a value alone does no harm: only if it decides.
Readable<Verdict> interpret(const Code& code, const device::Request& request, const CallNames& names = {});

}  // namespace hf::bpf
