// Tier: by which of the kernel's means we hear of changes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::container {

// functions:   fentry and fexit on the kernel's functions.
// tracepoints: of bpf(2).
// loads:       perf events of programs being loaded; then everything is looked at.
// files:       fanotify on the v1 devices hierarchy.
// polling:     looking again and again.
enum class Tier : std::uint8_t { functions, tracepoints, loads, files, polling };
std::string to_string(Tier tier);
Result<Tier> parse_tier(std::string_view text);

struct Tiers {
  Tier v2 = Tier::polling;
  Tier v1 = Tier::polling;
  bool has_v1 = false;
  bool has_v2 = false;
  std::vector<std::string> why;  // each better tier that does not work here, and the kernel's words

  [[nodiscard]] bool polls() const { return (has_v2 && v2 == Tier::polling) || (has_v1 && v1 == Tier::polling); }
};

}  // namespace hf::container
