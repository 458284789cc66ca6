// Irqs: keeps interrupts away from exclusive CPUs, and gives them back. What they were before is kept in a file.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/cpu/cpu_set.h"
#include "kernel/files/host.h"

namespace hf::cpus {

// Nothing is written that is so already. An interrupt that would have no CPU left stays where it is, and so does one
// that the kernel manages itself.
Result<void> keep_irqs_away(const kernel::Host& host, const std::string& directory, const cpu::CpuSet& exclusive);

}  // namespace hf::cpus
