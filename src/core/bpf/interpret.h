// Interpret: runs a device filter on one request, as the kernel would.
#pragma once

#include "core/bpf/instruction.h"
#include "core/device/device.h"

namespace hf::bpf {

// Opaque where the verdict depends on something outside the program and the request: a map, a helper's result, memory
// that was never written. Such a value matters only if the verdict depends on it.
//
// `before`: the verdict of the programs that ran before this one. A program may overrule it (bpf_set_retval).
Readable<Verdict> interpret(const Code& code, const device::Request& request, const CallNames& names = {},
                            Verdict before = Verdict::allow);

}  // namespace hf::bpf
