// Clock: the kernel's clocks.
#pragma once

#include <cstdint>

namespace hf::kernel {

std::uint64_t monotonic_now();   // nanoseconds of CLOCK_MONOTONIC, the clock of events
std::uint64_t thread_cpu_now();  // nanoseconds of CPU time of this thread
std::int64_t wall_now();         // milliseconds since 1970

}  // namespace hf::kernel
