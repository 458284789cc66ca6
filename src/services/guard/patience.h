// Patience: how often a container is healed when somebody takes it away again and again: fast at first, then slower, so
// that a tug of war is told of and not won by burning a core.
#pragma once

#include <cstdint>

#include "core/container/policy.h"

namespace hf::guard {

class Patience {
 public:
  // May it be healed now? If not, `ready_at` says when.
  bool take(const container::Limits& limits, std::uint64_t now);
  [[nodiscard]] std::uint64_t ready_at() const { return ready_at_; }
  [[nodiscard]] bool is_fighting() const { return is_fighting_; }

 private:
  double tokens_ = -1;  // none were counted yet
  std::uint64_t counted_at_ = 0;
  std::uint64_t ready_at_ = 0;
  std::uint64_t wait_ = 0;
  bool is_fighting_ = false;
};

}  // namespace hf::guard
