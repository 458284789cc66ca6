// Comparisons of numbers that depend on the request: always, never, for some accesses, or for the devices of a span.
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "core/bpf/evaluate.h"
#include "core/bpf/symbolic.h"
#include "core/bpf/symbolic_parts.h"

namespace hf::bpf {
namespace {

using device::Span;
using Tag = Value::Tag;

// The same comparison with both sides exchanged.
unsigned mirrored(unsigned operation) {
  switch (operation) {
    case BPF_JGT: return BPF_JLT;
    case BPF_JGE: return BPF_JLE;
    case BPF_JLT: return BPF_JGT;
    case BPF_JLE: return BPF_JGE;
    case BPF_JSGT: return BPF_JSLT;
    case BPF_JSGE: return BPF_JSLE;
    case BPF_JSLT: return BPF_JSGT;
    case BPF_JSLE: return BPF_JSGE;
    default: return operation;
  }
}

// The unsigned comparison that a signed one is, once the sign bits are flipped; absent for those that are unsigned
// anyway.
std::optional<unsigned> without_signs(unsigned operation) {
  switch (operation) {
    case BPF_JSGT: return BPF_JGT;
    case BPF_JSGE: return BPF_JGE;
    case BPF_JSLT: return BPF_JLT;
    case BPF_JSLE: return BPF_JLE;
    default: return std::nullopt;
  }
}

bool is_table_or_number(const Value& value) { return value.tag == Tag::access || value.tag == Tag::number; }

}  // namespace

Compared Symbols::compare(const Instruction& at, const Value& dst, const Value& src, const Scope& scope) {
  // The common case has a shortcut: a plain field against a number cuts the region itself.
  const unsigned bits = width_of(at) == Width::w32 ? 32 : 64;
  const bool is_simple = operation_of(at) != BPF_JSET && !without_signs(operation_of(at));
  if (is_simple && dst.tag == Tag::function && src.tag == Tag::number && function_of(dst).is_plain()) {
    return compare_function(operation_of(at), dst, bpf::truncate(src.bits, bits), scope);
  }
  const Value a = simplify(dst, scope);
  const Value b = simplify(src, scope);
  if (a.is_unknown() || b.is_unknown()) {
    return Unclear{a.is_unknown() ? a.bits : b.bits};
  }
  if (a.tag == Tag::number && b.tag == Tag::number) {
    return *holds(at, a.bits, b.bits);
  }
  if (is_table_or_number(a) && is_table_or_number(b)) {
    return compare_accesses(at, a, b, scope);
  }
  if (a.tag == Tag::access || b.tag == Tag::access) {
    return CutAccess{a.tag == Tag::access ? a.bits : b.bits};
  }
  if (a.tag == Tag::number) {
    return compare_with_number(mirrored(operation_of(at)), b, bpf::truncate(a.bits, bits), bits, scope);
  }
  if (b.tag != Tag::number) {
    return Unclear{unknown("compares two device numbers with each other").bits};
  }
  return compare_with_number(operation_of(at), a, bpf::truncate(b.bits, bits), bits, scope);
}

Compared Symbols::compare_accesses(const Instruction& at, const Value& a, const Value& b, const Scope& scope) const {
  AccessMask taken = 0;
  for (unsigned i = 0; i < kAccessValues; ++i) {
    const std::uint64_t x = a.tag == Tag::access ? tables_[a.bits][i] : a.bits;
    const std::uint64_t y = b.tag == Tag::access ? tables_[b.bits][i] : b.bits;
    taken = AccessMask(taken | (*holds(at, x, y) ? 1U << i : 0U));
  }
  return AccessMask(taken & scope.accesses);
}

// Compares a function or a sum with a number, both truncated to `bits`.
Compared Symbols::compare_with_number(unsigned operation, const Value& a, std::uint64_t limit, unsigned bits,
                                      const Scope& scope) {
  Computed prepared = truncate(a, bits, scope);
  if (const std::optional<unsigned> plain = without_signs(operation)) {
    prepared = then(prepared, [&](const Value& value) { return sign_extend(value, bits, scope); });
    prepared = then(prepared, [&](const Value& value) { return compute64(BPF_ADD, value, number(kSignBit), scope); });
    limit = bpf::sign_extend(limit, bits) + kSignBit;
    operation = *plain;
  }
  if (operation == BPF_JSET) {
    prepared = then(prepared, [&](const Value& value) { return compute64(BPF_AND, value, number(limit), scope); });
    operation = BPF_JNE;
    limit = 0;
  }
  if (const Cut* cut = std::get_if<Cut>(&prepared)) {
    return *cut;
  }
  if (const CutAccess* cut = std::get_if<CutAccess>(&prepared)) {
    return *cut;
  }
  return compare64(operation, simplify(std::get<Value>(prepared), scope), limit, scope);
}

Compared Symbols::compare64(unsigned operation, const Value& a, std::uint64_t b, const Scope& scope) {
  switch (a.tag) {
    case Tag::number: {
      const Instruction at{.code = std::uint8_t(BPF_JMP | operation), .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0};
      return *holds(at, a.bits, b);
    }
    case Tag::function: return compare_function(operation, a, b, scope);
    case Tag::sum: return compare_sum(operation, a, b, scope);
    default: return Unclear{a.bits};
  }
}

// Where is a >= b? Everywhere, nowhere, or on a span that reaches one end of the region.
std::variant<bool, Span> Symbols::at_least(const Value& a, std::uint64_t b, const Scope& scope) const {
  const Function& function = function_of(a);
  if (function.is_plain()) {
    if (b == 0 || b > device::kLastNumber) {
      return b == 0;
    }
    return Span{std::uint32_t(b), device::kLastNumber};
  }
  const Span span = scope.region.bounds(function.field);
  const Bounds of_a = bounds(a, scope);
  if (of_a.least >= b || of_a.most < b) {
    return of_a.least >= b;
  }
  const Cut cut = cut_where_reaches(a, b, scope);
  return of_a.rising ? Span{cut.at, span.last} : Span{span.first, cut.at - 1};
}

Compared Symbols::compare_function(unsigned operation, const Value& a, std::uint64_t b, const Scope& scope) {
  const Field field = function_of(a).field;
  const auto reaching = [&](std::uint64_t limit, bool inside) -> Compared {
    const std::variant<bool, Span> span = at_least(a, limit, scope);
    if (const bool* always = std::get_if<bool>(&span)) {
      return *always == inside;
    }
    return Where{field, std::get<Span>(span), inside};
  };
  switch (operation) {
    case BPF_JGE: return reaching(b, true);
    case BPF_JLT: return reaching(b, false);
    case BPF_JGT: return b == kLast64 ? Compared(false) : reaching(b + 1, true);
    case BPF_JLE: return b == kLast64 ? Compared(true) : reaching(b + 1, false);
    default: break;
  }
  // Equal: where it reaches b, less where it reaches b + 1.
  const bool equal = operation == BPF_JEQ;
  const std::variant<bool, Span> from = at_least(a, b, scope);
  const std::variant<bool, Span> beyond = b == kLast64 ? std::variant<bool, Span>(false) : at_least(a, b + 1, scope);
  if (from == std::variant<bool, Span>(false) || beyond == std::variant<bool, Span>(true)) {
    return !equal;
  }
  const Span all = function_of(a).is_plain() ? Span{} : scope.region.bounds(field);
  Span span = std::holds_alternative<Span>(from) ? std::get<Span>(from) : all;
  if (const Span* more = std::get_if<Span>(&beyond)) {
    if (more->first > span.first) {
      span.last = more->first - 1;
    } else if (more->last < span.last) {
      span.first = more->last + 1;
    } else {
      return !equal;  // its values skip b
    }
  }
  return Where{field, span, equal};
}

}  // namespace hf::bpf
