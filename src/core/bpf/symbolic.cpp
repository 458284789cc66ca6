#include "core/bpf/symbolic.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <optional>
#include <utility>

#include "core/bpf/evaluate.h"
#include "core/bpf/symbolic_parts.h"

namespace hf::bpf {
namespace {

using device::Span;
using Tag = Value::Tag;

constexpr std::size_t kLongestFunction = 12;
constexpr std::size_t kMostKept = 1024;  // different functions or tables; real filters have a handful

Wide apply(const Operation& operation, Wide value) {
  switch (operation.kind) {
    case Operation::Kind::add: return value + operation.by;
    case Operation::Kind::shift_left: return value << unsigned(operation.by);
    case Operation::Kind::shift_right: return value >> unsigned(operation.by);
    case Operation::Kind::flip: return kTwoTo64 - 1 - value;
    case Operation::Kind::multiply: return value * operation.by;
    case Operation::Kind::divide: return value / operation.by;
  }
  std::unreachable();
}

template <class T>
std::size_t intern(std::vector<T>& pool, T item) {
  const auto found = std::ranges::find(pool, item);
  if (found != pool.end()) {
    return std::size_t(found - pool.begin());
  }
  pool.push_back(std::move(item));
  return pool.size() - 1;
}

}  // namespace

Wide Function::at(std::uint32_t x) const {
  Wide value = x;
  for (const Operation& operation : operations) {
    value = apply(operation, value);
  }
  return value;
}

Value Symbols::field(Field field) { return function({field, {}}); }
Value Symbols::per_access(const PerAccess& table) {
  if (tables_.size() >= kMostKept) {
    return unknown("computes too much with the access");
  }
  return {Tag::access, 0, intern(tables_, table)};
}

Value Symbols::unknown(const std::string& reason) { return {Tag::unknown, 0, intern(reasons_, reason)}; }

Value Symbols::function(Function function) {
  if (function.operations.size() > kLongestFunction) {
    return unknown("computes too much with a device number");
  }
  if (functions_.size() >= kMostKept) {
    return unknown("tells devices apart too finely to be read as rules");
  }
  return {Tag::function, 0, intern(functions_, std::move(function))};
}

Value Symbols::sum(const Value& a, const Value& b) {
  if (a.tag != Tag::function || b.tag != Tag::function || sums_.size() >= kMostKept) {
    return unknown("computes too much with major and minor together");
  }
  return {Tag::sum, 0, intern(sums_, Sum{a.bits, b.bits})};
}

Value Symbols::sum_part(const Value& sum, bool first) const {
  return {Tag::function, 0, first ? sums_[sum.bits].a : sums_[sum.bits].b};
}

// Appends an operation and keeps the function in its shortest form.
Value Symbols::with(const Value& value, Operation::Kind kind, Wide by) {
  if (value.tag != Tag::function) {
    return value;  // already unknown
  }
  Function result = function_of(value);
  std::vector<Operation>& operations = result.operations;
  const bool neutral = (by == 0 && kind != Operation::Kind::flip && kind != Operation::Kind::multiply) ||
                       (by == 1 && (kind == Operation::Kind::multiply || kind == Operation::Kind::divide));
  if (neutral) {
    return value;
  }
  if (!operations.empty()) {
    Operation& last = operations.back();
    const bool undone =
        kind == Operation::Kind::shift_right && last.kind == Operation::Kind::shift_left && last.by == by;
    const bool twice_flipped = kind == Operation::Kind::flip && last.kind == Operation::Kind::flip;
    if (undone || twice_flipped) {
      operations.pop_back();
      return function(std::move(result));
    }
    if (kind == Operation::Kind::add && last.kind == Operation::Kind::add) {
      last.by += by;
      if (last.by == 0) {
        operations.pop_back();
      }
      return function(std::move(result));
    }
  }
  operations.push_back({kind, by});
  return function(std::move(result));
}

Symbols::Bounds Symbols::bounds(const Value& value, const Scope& scope) const {
  const Function& function = function_of(value);
  const Span span = scope.region.bounds(function.field);
  const Wide low = function.at(span.first);
  const Wide high = function.at(span.last);
  return {std::uint64_t(std::min(low, high)), std::uint64_t(std::max(low, high)), low <= high};
}

Symbols::WideBounds Symbols::bounds_of_sum(const Value& value, const Scope& scope) const {
  const Bounds a = bounds(sum_part(value, true), scope);
  const Bounds b = bounds(sum_part(value, false), scope);
  return {Wide(a.least) + b.least, Wide(a.most) + b.most};
}

// How many low bits of the function are always zero.
unsigned Symbols::low_zeros(const Value& value) const {
  unsigned zeros = 0;
  for (const Operation& operation : function_of(value).operations) {
    switch (operation.kind) {
      case Operation::Kind::shift_left: zeros += unsigned(operation.by); break;
      case Operation::Kind::add:
        zeros = std::min(zeros, unsigned(std::countr_zero(std::uint64_t(operation.by))));
        break;
      default: zeros = 0;
    }
  }
  return std::min(zeros, 63U);
}

// Finds the boundary of a function that has values below the threshold and values at or above it.
Cut Symbols::cut_where_reaches(const Value& value, std::uint64_t threshold, const Scope& scope) const {
  const Function& function = function_of(value);
  const Span span = scope.region.bounds(function.field);
  const bool rising = function.at(span.first) <= function.at(span.last);
  const std::uint64_t at =
      first_where(span, [&](std::uint32_t x) { return rising == (function.at(x) >= Wide(threshold)); });
  assert(at > span.first && at <= span.last);
  return {function.field, std::uint32_t(at)};
}

Value Symbols::simplify(const Value& value, const Scope& scope) {
  if (value.tag == Tag::access) {
    const PerAccess& table = tables_[value.bits];
    const auto first = unsigned(std::countr_zero(scope.accesses));
    for (unsigned i = first; i < kAccessValues; ++i) {
      if ((scope.accesses >> i & 1U) != 0 && table[i] != table[first]) {
        return value;
      }
    }
    return number(table[first]);
  }
  if (value.tag == Tag::function) {
    const Function& function = function_of(value);
    const Span span = scope.region.bounds(function.field);
    const Wide low = function.at(span.first);
    return low == function.at(span.last) ? number(std::uint64_t(low)) : value;
  }
  if (value.tag == Tag::sum) {
    const Value a = simplify(sum_part(value, true), scope);
    const Value b = simplify(sum_part(value, false), scope);
    if (a.tag == Tag::number && b.tag == Tag::number) {
      return number(a.bits + b.bits);
    }
    if (a.tag == Tag::number) {
      return with(b, Operation::Kind::add, Wide(a.bits));
    }
    return b.tag == Tag::number ? with(a, Operation::Kind::add, Wide(b.bits)) : value;
  }
  return value;
}

}  // namespace hf::bpf
