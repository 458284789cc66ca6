#include "kernel/files/clock.h"

#include <ctime>

namespace hf::kernel {
namespace {

timespec read(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now;
}

std::uint64_t nanoseconds_of(clockid_t clock) {
  const timespec now = read(clock);
  return std::uint64_t(now.tv_sec) * 1'000'000'000U + std::uint64_t(now.tv_nsec);
}

}  // namespace

std::uint64_t monotonic_now() { return nanoseconds_of(CLOCK_MONOTONIC); }

std::uint64_t thread_cpu_now() { return nanoseconds_of(CLOCK_THREAD_CPUTIME_ID); }

std::int64_t wall_now() {
  const timespec now = read(CLOCK_REALTIME);
  return std::int64_t(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace hf::kernel
