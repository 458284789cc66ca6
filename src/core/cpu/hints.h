// Hints: which NUMA nodes could hold a container or a pod, as kubelet's topology manager asks its providers.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/cpu/policy.h"

namespace hf::cpu {

struct Hint {
  std::vector<NumaId> nodes;  // ascending
  bool is_preferred = false;

  friend bool operator==(const Hint&, const Hint&) = default;
};

// None: no opinion. An empty list: it cannot be done. Fewest nodes first.
using Hints = std::optional<std::vector<Hint>>;

inline constexpr std::size_t kMostHintedNodes = 16;  // every set of them is a hint; kubelet stops at 8 on its own

Result<Hints> hints_for(const Policy& policy, const State& state, const PodAsk& pod, std::string_view container);
Result<Hints> hints_for(const Policy& policy, const State& state, const PodAsk& pod);

}  // namespace hf::cpu
