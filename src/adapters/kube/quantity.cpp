#include "adapters/kube/quantity.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/base/text.h"

namespace hf::kube {
namespace {

constexpr std::array<std::string_view, 4> kBinary = {"Ki", "Mi", "Gi", "Ti"};
constexpr std::array<std::string_view, 4> kDecimal = {"k", "M", "G", "T"};

}  // namespace

std::string render_quantity(std::uint64_t bytes) {
  constexpr unsigned kStep = 1024;
  std::string_view unit;
  for (const std::string_view larger : kBinary) {
    if (bytes == 0 || bytes % kStep != 0) {
      break;
    }
    bytes /= kStep;
    unit = larger;
  }
  return std::to_string(bytes).append(unit);
}

std::optional<std::uint64_t> parse_quantity(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::optional<std::uint64_t> number = parse_number<std::uint64_t>(text.substr(0, digits));
  const std::string_view unit = text.substr(digits);
  const auto binary = std::ranges::find(kBinary, unit);
  const auto decimal = std::ranges::find(kDecimal, unit);
  if (!number || (!unit.empty() && binary == kBinary.end() && decimal == kDecimal.end())) {
    return std::nullopt;
  }
  const std::uint64_t step = binary != kBinary.end() ? 1024 : 1000;
  const auto times = unit.empty()              ? 0
                     : binary != kBinary.end() ? binary - kBinary.begin() + 1
                                               : decimal - kDecimal.begin() + 1;
  for (std::ptrdiff_t i = 0; i < times; ++i) {
    if (__builtin_mul_overflow(*number, step, &*number)) {
      return std::nullopt;
    }
  }
  return number;
}

}  // namespace hf::kube
