// Irqs: keeps interrupts away from exclusive CPUs, and gives them back. What they were before is kept in a file.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/cpu/cpu_set.h"
#include "kernel/files/host.h"

namespace hf::cpus {

// One that was on CPUs that are released now returns to them. Any other that is on none of the exclusive CPUs stays
// where it is (irqbalance may have chosen that), until no CPU is exclusive. One that was only on exclusive CPUs goes to
// all others. One that the kernel manages itself stays.
Result<void> keep_irqs_away(const kernel::Host& host, const std::string& directory, const cpu::CpuSet& exclusive,
                            const cpu::CpuSet& released = {});

}  // namespace hf::cpus
