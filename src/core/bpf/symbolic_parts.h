// SymbolicParts: what symbolic arithmetic and symbolic comparisons share.
#pragma once

#include <cstdint>
#include <variant>

#include "core/bpf/symbolic.h"
#include "core/device/rule.h"

namespace hf::bpf {

inline constexpr Wide kTwoTo64 = Wide(1) << 64;
inline constexpr std::uint64_t kLast64 = ~std::uint64_t(0);
inline constexpr std::uint64_t kSignBit = std::uint64_t(1) << 63;

// The first x of the span for which the predicate, false then true, is true; one past the span's end if none is.
template <class Predicate>
std::uint64_t first_where(const device::Span& span, Predicate predicate) {
  std::uint64_t low = span.first;
  std::uint64_t high = std::uint64_t(span.last) + 1;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (predicate(std::uint32_t(middle))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Continues with the value, or returns the cut that has to come first.
template <class Next>
Computed then(const Computed& first, Next next) {
  if (const Value* value = std::get_if<Value>(&first)) {
    return next(*value);
  }
  return first;
}

}  // namespace hf::bpf
