// AccessField: the values that the access field of a request can have, by index: the seven combinations of a block
// device, then the seven of a character device.
#pragma once

#include <array>
#include <cstdint>

#include "core/device/device.h"

namespace hf::bpf {

inline constexpr unsigned kCombinations = 7;
inline constexpr unsigned kAccessValues = 2 * kCombinations;

using AccessMask = std::uint16_t;  // bit n is the value with the index n
using PerAccess = std::array<std::uint64_t, kAccessValues>;

inline constexpr AccessMask kAllAccesses = (1U << kAccessValues) - 1;

constexpr device::Kind kind_at(unsigned index) {
  return index < kCombinations ? device::Kind::block : device::Kind::character;
}
constexpr unsigned combination_at(unsigned index) { return index % kCombinations + 1; }

}  // namespace hf::bpf
