// Privileges: what the calling thread may ask of the kernel: its capabilities, and the system calls it can make.
#pragma once

#include <cstdint>

#include "core/base/result.h"

namespace hf::kernel {

using Capabilities = std::uint64_t;  // one bit each, numbered as the kernel numbers them
constexpr Capabilities capability(unsigned number) { return Capabilities(1) << number; }

Result<Capabilities> read_capabilities();  // the permitted ones of this thread

// This thread keeps at most these, in every set. What it starts gains none by being root's or set-user-id.
Result<void> limit_capabilities(Capabilities kept);

// What a seccomp filter leaves of the privileged system calls. Ordinary ones, on files and memory, are never refused.
struct SystemCalls {
  bool may_make_nodes = false;      // mknod
  bool may_execute_opened = false;  // a program by its descriptor; never one by its path
};
// All others that reach beyond files fail with EPERM: mounts, namespaces, processes, sockets, modules, keys, BPF.
Result<void> restrict_system_calls(SystemCalls allowed);

}  // namespace hf::kernel
