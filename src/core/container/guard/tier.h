// Tier: the kernel interface that reports changes of device rules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::container {

// tracepoints: v2: of bpf(2), and of cgroups that are created and removed. Kernel 5.8 and later, with BTF.
// files:       v1: fanotify on the devices hierarchy.
// polling:     v1 and v2, where the kernel or its settings refuse the others.
enum class Tier : std::uint8_t { tracepoints, files, polling };
std::string to_string(Tier tier);
Result<Tier> parse_tier(std::string_view text);

struct Tiers {
  Tier v2 = Tier::polling;
  Tier v1 = Tier::polling;
  bool has_v1 = false;
  bool has_v2 = false;
  std::vector<std::string> why;  // each better tier that does not work here, and the kernel's error

  [[nodiscard]] bool polls() const { return (has_v2 && v2 == Tier::polling) || (has_v1 && v1 == Tier::polling); }
};

}  // namespace hf::container
