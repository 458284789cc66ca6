#include <bit>

#include "core/bpf/evaluate.h"
#include "core/bpf/symbolic.h"
#include "core/bpf/symbolic_parts.h"

namespace hf::bpf {
namespace {

using Tag = Value::Tag;

bool is_low_mask(std::uint64_t mask) { return (mask & (mask + 1)) == 0; }

}  // namespace

Computed Symbols::compute(const Instruction& at, const Value& dst, const Value& src, const Scope& scope) {
  const unsigned operation = operation_of(at);
  const bool unary = operation == BPF_NEG || operation == BPF_END;
  const Value a = operation == BPF_MOV ? number(0) : simplify(dst, scope);
  const Value b = unary ? number(0) : simplify(src, scope);
  if (a.tag == Tag::number && b.tag == Tag::number) {
    return number(*bpf::compute(at, a.bits, b.bits));
  }
  if (a.is_unknown() || b.is_unknown()) {
    return a.is_unknown() ? Value{Tag::unknown, 0, a.bits} : Value{Tag::unknown, 0, b.bits};
  }
  const auto is_table_or_number = [](const Value& value) {
    return value.tag == Tag::access || value.tag == Tag::number;
  };
  if (is_table_or_number(a) && is_table_or_number(b)) {
    return elementwise(at, a, b);
  }
  if (a.tag == Tag::access || b.tag == Tag::access) {
    return CutAccess{a.tag == Tag::access ? a.bits : b.bits};
  }
  if (operation == BPF_MOV && at.off != 0) {
    return then(sign_extend(b, unsigned(at.off), scope), [&](const Value& extended) {
      return width_of(at) == Width::w32 ? truncate(extended, 32, scope) : Computed(extended);
    });
  }
  if (at.off != 0 || operation == BPF_END) {
    return unknown("divides with signs or swaps the bytes of a device number");
  }
  if (width_of(at) == Width::w64) {
    return compute64(operation, a, b, scope);
  }
  return then(truncate(a, 32, scope), [&](const Value& low_a) {
    return then(truncate(b, 32, scope), [&](const Value& low_b) {
      const bool is_signed_shift = operation == BPF_ARSH;
      return then(is_signed_shift ? sign_extend(low_a, 32, scope) : Computed(low_a), [&](const Value& wide_a) {
        const bool shifts = operation == BPF_LSH || operation == BPF_RSH || is_signed_shift;
        const Value by = shifts && low_b.tag == Tag::number ? number(low_b.bits & 31U) : low_b;
        return then(compute64(operation, wide_a, by, scope),
                    [&](const Value& result) { return truncate(result, 32, scope); });
      });
    });
  });
}

Computed Symbols::elementwise(const Instruction& at, const Value& a, const Value& b) {
  PerAccess result{};
  for (unsigned i = 0; i < kAccessValues; ++i) {
    const std::uint64_t x = a.tag == Tag::access ? tables_[a.bits][i] : a.bits;
    const std::uint64_t y = b.tag == Tag::access ? tables_[b.bits][i] : b.bits;
    result[i] = *bpf::compute(at, x, y);
  }
  return per_access(result);
}

Computed Symbols::compute64(unsigned operation, const Value& a, const Value& b, const Scope& scope) {
  if (operation == BPF_MOV) {
    return b;
  }
  if (a.is_unknown() || b.is_unknown()) {
    return a.is_unknown() ? a : b;
  }
  if (a.tag == Tag::number && b.tag == Tag::number) {
    const Instruction at{.code = std::uint8_t(BPF_ALU64 | operation), .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0};
    return number(*bpf::compute(at, a.bits, b.bits));
  }
  if (a.tag == Tag::sum && b.tag == Tag::number) {
    return sum_with_number(operation, a, b.bits, scope);
  }
  if (b.tag == Tag::sum && a.tag == Tag::number && (operation == BPF_ADD || operation == BPF_AND)) {
    return sum_with_number(operation, b, a.bits, scope);
  }
  if (a.tag == Tag::sum || b.tag == Tag::sum) {
    return unknown("computes too much with major and minor together");
  }
  if (operation == BPF_NEG) {
    return subtract_from(0, a, scope);
  }
  if (b.tag == Tag::number) {
    return with_number(operation, a, b.bits, scope);
  }
  if (a.tag == Tag::number) {
    return number_with(operation, a.bits, b, scope);
  }
  return two_functions(operation, a, b, scope);
}

Computed Symbols::with_number(unsigned operation, const Value& a, std::uint64_t b, const Scope& scope) {
  switch (operation) {
    case BPF_ADD: return add(a, b, scope);
    case BPF_SUB: return add(a, 0 - b, scope);
    case BPF_AND: return mask(a, b, scope);
    case BPF_OR:
    case BPF_XOR: return set_bits(operation, a, b, scope);
    case BPF_LSH: return shift_left(a, unsigned(b & 63U), scope);
    case BPF_RSH: return shift_right(a, unsigned(b & 63U), scope);
    case BPF_ARSH: return shift_signed(a, unsigned(b & 63U), scope);
    case BPF_DIV: return b == 0 ? number(0) : with(a, Operation::Kind::divide, Wide(b));
    case BPF_MOD: return remainder(a, b, scope);
    case BPF_MUL:
      if (b == 0) {
        return number(0);
      }
      if (bounds(a, scope).most <= kLast64 / b) {
        return with(a, Operation::Kind::multiply, Wide(b));
      }
      return unknown("multiplies a device number past 64 bits");
    default: return unknown("has an unknown arithmetic instruction");
  }
}

Computed Symbols::number_with(unsigned operation, std::uint64_t a, const Value& b, const Scope& scope) {
  switch (operation) {
    case BPF_ADD:
    case BPF_MUL:
    case BPF_AND:
    case BPF_OR:
    case BPF_XOR: return with_number(operation, b, a, scope);
    case BPF_SUB: return subtract_from(a, b, scope);
    default: return unknown("shifts or divides by a device number");
  }
}

Computed Symbols::two_functions(unsigned operation, const Value& a, const Value& b, const Scope& scope) {
  const Bounds of_a = bounds(a, scope);
  const Bounds of_b = bounds(b, scope);
  const bool different = function_of(a).field != function_of(b).field;
  const bool rising = of_a.rising && of_b.rising;
  const bool fits = of_a.most <= kLast64 - of_b.most;
  const bool no_carry = (of_b.most >> low_zeros(a)) == 0 || (of_a.most >> low_zeros(b)) == 0;
  const bool adds = operation == BPF_ADD || ((operation == BPF_OR || operation == BPF_XOR) && no_carry);
  if (different && rising && fits && adds) {
    return sum(a, b);
  }
  return unknown("combines major and minor in a way rules cannot say");
}

Computed Symbols::sum_with_number(unsigned operation, const Value& a, std::uint64_t b, const Scope& scope) {
  const Value first = sum_part(a, true);
  const Value second = sum_part(a, false);
  const Wide most = bounds_of_sum(a, scope).most;
  const auto is_multiple = [&](const Value& part, unsigned bits) { return low_zeros(part) >= bits; };
  if (operation == BPF_ADD && most + b < kTwoTo64) {
    return sum(with(first, Operation::Kind::add, Wide(b)), second);
  }
  if (operation == BPF_LSH && most << (b & 63U) < kTwoTo64 && most < kTwoTo64) {
    return sum(with(first, Operation::Kind::shift_left, Wide(b & 63U)),
               with(second, Operation::Kind::shift_left, Wide(b & 63U)));
  }
  if (operation == BPF_RSH) {
    const auto by = unsigned(b & 63U);
    if (is_multiple(first, by) && bounds(second, scope).most >> by == 0) {
      return shift_right(first, by, scope);
    }
    if (is_multiple(second, by) && bounds(first, scope).most >> by == 0) {
      return shift_right(second, by, scope);
    }
    if (is_multiple(first, by) || is_multiple(second, by)) {
      return sum(with(first, Operation::Kind::shift_right, by), with(second, Operation::Kind::shift_right, by));
    }
  }
  if (operation == BPF_AND && is_low_mask(b)) {
    const auto bits = unsigned(std::popcount(b));
    if (most <= Wide(b)) {
      return a;
    }
    if (bits < 64 && is_multiple(first, bits)) {
      return truncate(second, bits, scope);
    }
    if (bits < 64 && is_multiple(second, bits)) {
      return truncate(first, bits, scope);
    }
  }
  return unknown("computes too much with major and minor together");
}

Computed Symbols::add(const Value& a, std::uint64_t b, const Scope& scope) {
  if (a.tag != Tag::function) {
    return a;  // already unknown
  }
  const Bounds of_a = bounds(a, scope);
  if (Wide(of_a.most) + b < kTwoTo64) {
    return with(a, Operation::Kind::add, Wide(b));
  }
  if (Wide(of_a.least) + b >= kTwoTo64) {
    return with(a, Operation::Kind::add, Wide(b) - kTwoTo64);
  }
  return cut_where_reaches(a, 0 - b, scope);
}

Computed Symbols::subtract_from(std::uint64_t a, const Value& b, const Scope& scope) {
  return add(with(b, Operation::Kind::flip, 0), a + 1, scope);
}

Computed Symbols::mask(const Value& a, std::uint64_t b, const Scope& scope) {
  if (b == 0) {
    return number(0);
  }
  const auto low = unsigned(std::countr_zero(b));
  if (!is_low_mask(b >> low)) {
    return unknown("tests single bits of a device number");
  }
  const auto width = unsigned(std::popcount(b));
  return then(shift_right(a, low, scope), [&](const Value& shifted) {
    return then(truncate(shifted, width, scope), [&](const Value& cut) { return shift_left(cut, low, scope); });
  });
}

Computed Symbols::set_bits(unsigned operation, const Value& a, std::uint64_t b, const Scope& scope) {
  const Bounds of_a = bounds(a, scope);
  const bool below = b >> low_zeros(a) == 0;
  const bool above = b != 0 && of_a.most >> std::countr_zero(b) == 0;
  if (b == 0 || below || above) {
    return add(a, b, scope);
  }
  if (operation == BPF_XOR && is_low_mask(b) && of_a.most <= b) {
    return subtract_from(b, a, scope);
  }
  return unknown("sets single bits of a device number");
}

Computed Symbols::remainder(const Value& a, std::uint64_t b, const Scope& scope) {
  if (b == 0) {
    return a;
  }
  const Bounds of_a = bounds(a, scope);
  const std::uint64_t times = of_a.least / b;
  if (times == of_a.most / b) {
    return with(a, Operation::Kind::add, -Wide(times) * Wide(b));
  }
  return cut_where_reaches(a, (times + 1) * b, scope);
}

Computed Symbols::shift_left(const Value& a, unsigned by, const Scope& scope) {
  return then(truncate(a, 64 - by, scope), [&](const Value& cut) -> Computed {
    if (cut.tag == Tag::number) {
      return number(cut.bits << by);
    }
    return cut.is_unknown() ? cut : with(cut, Operation::Kind::shift_left, by);
  });
}

Computed Symbols::shift_right(const Value& value, unsigned by, const Scope& scope) {
  const Value a = simplify(value, scope);
  if (a.is_unknown()) {
    return Value{Tag::unknown, 0, a.bits};
  }
  if (a.tag == Tag::number) {
    return number(a.bits >> by);
  }
  if (a.tag == Tag::access) {
    return CutAccess{a.bits};
  }
  return a.tag == Tag::sum ? sum_with_number(BPF_RSH, a, by, scope) : with(a, Operation::Kind::shift_right, by);
}

Computed Symbols::shift_signed(const Value& a, unsigned by, const Scope& scope) {
  const Bounds of_a = bounds(a, scope);
  if (of_a.most < kSignBit) {
    return with(a, Operation::Kind::shift_right, by);
  }
  if (of_a.least >= kSignBit) {
    const Value shifted = with(with(a, Operation::Kind::flip, 0), Operation::Kind::shift_right, by);
    return shifted.tag == Tag::function ? with(shifted, Operation::Kind::flip, 0) : shifted;
  }
  return cut_where_reaches(a, kSignBit, scope);
}

Computed Symbols::truncate(const Value& value, unsigned bits, const Scope& scope) {
  const Value a = simplify(value, scope);
  if (bits >= 64 || a.is_unknown()) {
    return a.is_unknown() ? Value{Tag::unknown, 0, a.bits} : a;
  }
  if (a.tag == Tag::number) {
    return number(bpf::truncate(a.bits, bits));
  }
  if (a.tag == Tag::access) {
    return CutAccess{a.bits};
  }
  if (a.tag == Tag::sum) {
    return sum_with_number(BPF_AND, a, (std::uint64_t(1) << bits) - 1, scope);
  }
  const Bounds of_a = bounds(a, scope);
  const std::uint64_t block = of_a.least >> bits;
  if (block == of_a.most >> bits) {
    return with(a, Operation::Kind::add, -Wide(block << bits));
  }
  return cut_where_reaches(a, (block + 1) << bits, scope);
}

Computed Symbols::sign_extend(const Value& value, unsigned bits, const Scope& scope) {
  return then(truncate(value, bits, scope), [&](const Value& a) -> Computed {
    if (a.is_unknown() || bits >= 64) {
      return a;
    }
    if (a.tag == Tag::number) {
      return number(bpf::sign_extend(a.bits, bits));
    }
    if (a.tag == Tag::sum) {
      return unknown("computes too much with major and minor together");
    }
    const Bounds of_a = bounds(a, scope);
    const std::uint64_t sign = std::uint64_t(1) << (bits - 1);
    if (of_a.most < sign) {
      return a;
    }
    if (of_a.least >= sign) {
      return with(a, Operation::Kind::add, kTwoTo64 - (Wide(1) << bits));
    }
    return cut_where_reaches(a, sign, scope);
  });
}

}  // namespace hf::bpf
