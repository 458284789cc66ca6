// Comparisons of sums of two parts, such as a number computed from major and minor.
#include <cstdint>
#include <variant>

#include "core/bpf/symbolic.h"
#include "core/bpf/symbolic_parts.h"

namespace hf::bpf {

using device::Span;

std::variant<bool, Cut> Symbols::sum_at_least(const Value& a, std::uint64_t b, const Scope& scope) const {
  const WideBounds whole = bounds_of_sum(a, scope);
  if (whole.least >= Wide(b) || whole.most < Wide(b)) {
    return whole.least >= Wide(b);
  }
  // Cut off what is certain for the first part alone; when nothing is, halve it. A part with a single value is
  // simplified away.
  const Value first = sum_part(a, true);
  const Bounds rest = bounds(sum_part(a, false), scope);
  const Function& function = function_of(first);
  const Span span = scope.region.bounds(function.field);
  const auto possible = first_where(span, [&](std::uint32_t x) { return function.at(x) + Wide(rest.most) >= Wide(b); });
  const auto certain = first_where(span, [&](std::uint32_t x) { return function.at(x) + Wide(rest.least) >= Wide(b); });
  if (possible > span.first && possible <= span.last) {
    return Cut{function.field, std::uint32_t(possible)};
  }
  if (certain > span.first && certain <= span.last) {
    return Cut{function.field, std::uint32_t(certain)};
  }
  return Cut{function.field, span.first + (span.last - span.first) / 2 + 1};
}

Compared Symbols::compare_sum(unsigned operation, const Value& a, std::uint64_t b, const Scope& scope) {
  const auto reaches = [&](std::uint64_t limit, bool wanted) -> Compared {
    const std::variant<bool, Cut> reached = sum_at_least(a, limit, scope);
    if (const Cut* cut = std::get_if<Cut>(&reached)) {
      return *cut;
    }
    return std::get<bool>(reached) == wanted;
  };
  switch (operation) {
    case BPF_JGE: return reaches(b, true);
    case BPF_JLT: return reaches(b, false);
    case BPF_JGT: return b == kLast64 ? Compared(false) : reaches(b + 1, true);
    case BPF_JLE: return b == kLast64 ? Compared(true) : reaches(b + 1, false);
    default: break;
  }
  const Compared from = reaches(b, true);
  if (std::holds_alternative<Cut>(from)) {
    return from;
  }
  const Compared beyond = b == kLast64 ? Compared(false) : reaches(b + 1, true);
  if (std::holds_alternative<Cut>(beyond)) {
    return beyond;
  }
  return (std::get<bool>(from) && !std::get<bool>(beyond)) == (operation == BPF_JEQ);
}

}  // namespace hf::bpf
