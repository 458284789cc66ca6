// Irq: the CPUs that handle an interrupt.
#pragma once

#include <cstdint>
#include <map>

#include "core/base/result.h"
#include "core/cpu/cpu_set.h"
#include "kernel/files/host.h"

namespace hf::kernel {

using IrqAffinities = std::map<std::uint32_t, cpu::CpuSet>;  // by the number of the interrupt

IrqAffinities read_irq_affinities(const Host& host);  // those that can be read

// Fails for interrupts that the kernel manages itself, such as those of each queue of an NVMe disk.
Result<void> write_irq_affinity(const Host& host, std::uint32_t irq, const cpu::CpuSet& cpus);

}  // namespace hf::kernel
