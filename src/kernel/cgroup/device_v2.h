// DeviceV2: the device programs of cgroup v2, which are replaced without a gap, or locked.
#pragma once

#include <cstddef>

#include "core/base/result.h"
#include "core/bpf/instruction.h"
#include "core/container/gate/gate.h"
#include "kernel/cgroup/bpf_api.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/filters.h"

namespace hf::kernel {

// Replaces one program atomically (compare and swap). is_overtaken() is true of the error if the program was no longer
// attached. Before kernel 6.17 there is no compare and swap for programs attached alone, so the list is read once more
// immediately before.
Result<container::ProgramId> replace_program(Filters& filters, const Cgroup& cgroup, container::ProgramId old,
                                             const bpf::Code& code);

// Attaches a program where there is none.
Result<container::ProgramId> attach_program(Filters& filters, const Cgroup& cgroup, const bpf::Code& code);

// Detaches one of several programs whose meaning the others cover, provided that the cgroup still has exactly
// `programs` of them. Before kernel 6.17, another process that detaches a program within the same microseconds goes
// unnoticed.
Result<void> detach_program(Filters& filters, const Cgroup& cgroup, container::ProgramId old, std::size_t programs);

// Attaches exclusively one program that means the same as all attached ones together, so that the kernel refuses every
// other writer. The kernel allows that only in a cgroup without programs, so its processes are frozen during the
// exchange. Fails where a cgroup below has programs of its own, which would be switched off, and where a program cannot
// be read.
Result<container::ProgramId> lock_programs(Filters& filters, const Cgroup& cgroup);

// Returns to an attachment that admits other programs. The meaning stays, and the processes are frozen meanwhile as
// well.
Result<container::ProgramId> unlock_programs(Filters& filters, const Cgroup& cgroup);

}  // namespace hf::kernel
