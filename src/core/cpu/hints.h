// Hints: the sets of NUMA nodes that could hold a container or a pod, as kubelet's topology manager requests them.
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

// Absent: no preference. An empty list: the request cannot be satisfied. Hints with the fewest nodes come first.
using Hints = std::optional<std::vector<Hint>>;

inline constexpr std::size_t kMostHintedNodes = 8;  // every subset of the nodes is a hint; kubelet stops there too

Result<Hints> hints_for(const Policy& policy, const State& state, const PodRequest& pod, std::string_view container);
Result<Hints> hints_for(const Policy& policy, const State& state, const PodRequest& pod);

}  // namespace hf::cpu
