// Symbols: the names of the kernel functions that a program read back from the kernel calls.
#pragma once

#include <optional>

#include "core/bpf/instruction.h"
#include "kernel/files/host.h"

namespace hf::kernel {

// Reads /proc/kallsyms once, when it is first needed.
class KernelSymbols {
 public:
  // Empty for programs without such calls, and where the kernel hides addresses.
  bpf::CallNames names_for(const Host& host, const bpf::Code& code);

 private:
  std::optional<bpf::CallNames> all_;
};

}  // namespace hf::kernel
