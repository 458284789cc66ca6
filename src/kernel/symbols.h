// Symbols: the names of the kernel functions that a program read back from the kernel calls.
#pragma once

#include "core/bpf/instruction.h"
#include "kernel/host.h"

namespace hf::kernel {

// From /proc/kallsyms; empty for programs without such calls, and where the kernel hides addresses.
bpf::CallNames read_call_names(const Host& host, const bpf::Code& code);

}  // namespace hf::kernel
