// HealRateLimiter: limits how often one container is healed when a writer removes its devices again and again: fast at
// first, then slower, so that the fight is reported and does not burn a core.
#pragma once

#include <cstdint>

#include "core/container/guard/policy.h"

namespace hf::guard {

class HealRateLimiter {
 public:
  // Counts one heal at `now`, in nanoseconds. False: the next heal has to wait until `ready_at`.
  bool take(const container::Limits& limits, std::uint64_t now);
  [[nodiscard]] std::uint64_t ready_at() const { return ready_at_; }

 private:
  double tokens_ = -1;  // -1: no heal was counted yet
  std::uint64_t counted_at_ = 0;
  std::uint64_t ready_at_ = 0;
  std::uint64_t pause_ = 0;  // the last one
};

}  // namespace hf::guard
