// DeviceV2: the device programs of cgroup v2: replaced without a gap, or locked.
#pragma once

#include <cstddef>

#include "core/base/result.h"
#include "core/bpf/instruction.h"
#include "core/container/gate.h"
#include "kernel/bpf_api.h"
#include "kernel/cgroup.h"
#include "kernel/filters.h"

namespace hf::kernel {

// Puts code in the place of one program: compare and swap, nothing in between. is_overtaken() tells when the program
// was no longer there. Programs attached alone have no compare and swap before kernel 6.17; there the list is read once
// more right before.
Result<container::ProgramId> replace_program(Filters& filters, const Cgroup& cgroup, container::ProgramId old,
                                             const bpf::Code& code);

// A program where there is none.
Result<container::ProgramId> attach_program(Filters& filters, const Cgroup& cgroup, const bpf::Code& code);

// Takes one of several programs off, as long as the cgroup has that many: those beside it say all it said. Before
// kernel 6.17 somebody who takes off another one within those microseconds is not noticed.
Result<void> detach_program(Filters& filters, const Cgroup& cgroup, container::ProgramId old, std::size_t programs);

// The exclusive attachment: one program that means all that were there, behind which the kernel refuses every other
// writer. The kernel allows that only to a cgroup without programs, so its processes are frozen while they change
// hands. Refused where a cgroup below has programs of its own, which would be switched off, and where a program cannot
// be read.
Result<container::ProgramId> lock_programs(Filters& filters, const Cgroup& cgroup);

// Back to an attachment beside which others may attach; the same meaning, the same care.
Result<container::ProgramId> unlock_programs(Filters& filters, const Cgroup& cgroup);

}  // namespace hf::kernel
