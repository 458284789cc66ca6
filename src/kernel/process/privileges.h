// Privileges: the capabilities of the calling thread, and the system calls that it may make.
#pragma once

#include <cstdint>

#include "core/base/result.h"

namespace hf::kernel {

using Capabilities = std::uint64_t;  // one bit each, with the numbers of the kernel
constexpr Capabilities capability(unsigned number) { return Capabilities(1) << number; }

Result<Capabilities> read_capabilities();  // the permitted ones of this thread

// This thread keeps at most these capabilities, in every set. Programs that it starts gain none, even if they are run
// by root or set-user-id.
Result<void> limit_capabilities(Capabilities kept);

// The privileged system calls that a seccomp filter still allows. Those on files and memory are always allowed.
struct SystemCalls {
  bool may_make_nodes = false;      // mknod
  bool may_execute_opened = false;  // execveat(2) of a descriptor; a path is never allowed
};
// All others beyond file access fail with EPERM: mounts, namespaces, processes, sockets, modules, keys, BPF.
Result<void> restrict_system_calls(SystemCalls allowed);

}  // namespace hf::kernel
