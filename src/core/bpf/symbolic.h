// Symbolic: numbers that depend on the request, as the analyser computes with them.
//
// A number is a constant, a table over the 14 values of the access field, a monotone function of the major or of the
// minor, or the sum of one of each. Arithmetic keeps functions monotone: where a function would wrap around or be cut
// off inside the current region of devices, the result is a Cut, and the analyser executes the instruction again on
// both parts. What fits none of these is Unknown, with the reason; that makes a program opaque only if the verdict
// depends on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/bpf/access_field.h"
#include "core/bpf/instruction.h"
#include "core/bpf/region.h"

namespace hf::bpf {

__extension__ using Wide = __int128;  // exact, where 64 bits could wrap

struct Value {
  // `number`: bits. `access`, `function`, `sum`: bits is an index into Symbols. `unknown`: bits is a reason.
  // `context`, `stack`: addresses, bits is the offset.
  enum class Tag : std::uint8_t { unset, number, access, function, sum, unknown, map, context, stack };

  Tag tag = Tag::unset;
  std::uint32_t frame = 0;  // of a stack address
  std::uint64_t bits = 0;

  [[nodiscard]] bool is_address() const { return tag == Tag::context || tag == Tag::stack; }
  [[nodiscard]] bool is_unknown() const { return tag == Tag::unknown || tag == Tag::map; }
  friend bool operator==(const Value&, const Value&) = default;
};

struct Operation {
  enum class Kind : std::uint8_t { add, shift_left, shift_right, flip, multiply, divide };

  Kind kind = Kind::add;
  Wide by = 0;

  friend bool operator==(const Operation&, const Operation&) = default;
};

// A monotone function of one field: the operations in order, exact integers, every step within 64 bits on the region.
struct Function {
  Field field = Field::major;
  std::vector<Operation> operations;

  [[nodiscard]] Wide at(std::uint32_t x) const;
  [[nodiscard]] bool is_plain() const { return operations.empty(); }
  friend bool operator==(const Function&, const Function&) = default;
};

struct Sum {
  std::size_t a = 0;  // two functions, of different fields, both rising
  std::size_t b = 0;

  friend bool operator==(const Sum&, const Sum&) = default;
};

// What is known on a path about the request.
struct Scope {
  const Region& region;
  AccessMask accesses;
};

struct Cut {  // execute again for field < at and for field >= at
  Field field;
  std::uint32_t at;
};
struct CutAccess {  // execute again for each value this table has
  std::size_t table;
};
using Computed = std::variant<Value, Cut, CutAccess>;

// The devices for which a comparison holds: field inside the span, or outside it.
struct Where {
  Field field;
  device::Span span;
  bool inside;
};
struct Unclear {  // depends on an unknown
  std::size_t reason;
};
using Compared = std::variant<bool, AccessMask, Where, Unclear, Cut, CutAccess>;

class Symbols {
 public:
  static Value number(std::uint64_t bits) { return {Value::Tag::number, 0, bits}; }
  Value field(Field field);
  Value per_access(const PerAccess& table);
  Value unknown(const std::string& reason);
  [[nodiscard]] const std::string& reason(std::size_t index) const { return reasons_[index]; }
  [[nodiscard]] const PerAccess& table(std::size_t index) const { return tables_[index]; }

  // The same value in its simplest form: a table that is constant here is a number, and so is a function of one device.
  Value simplify(const Value& value, const Scope& scope);

  Computed compute(const Instruction& at, const Value& dst, const Value& src, const Scope& scope);
  Compared compare(const Instruction& at, const Value& dst, const Value& src, const Scope& scope);

  // Loads of parts of a stored value.
  Computed shift_right(const Value& value, unsigned by, const Scope& scope);
  Computed truncate(const Value& value, unsigned bits, const Scope& scope);
  Computed sign_extend(const Value& value, unsigned bits, const Scope& scope);

 private:
  struct Bounds {
    std::uint64_t least;
    std::uint64_t most;
    bool rising;
  };

  Value function(Function function);
  Value sum(const Value& a, const Value& b);
  Value with(const Value& value, Operation::Kind kind, Wide by);
  [[nodiscard]] const Function& function_of(const Value& value) const { return functions_[value.bits]; }
  [[nodiscard]] Bounds bounds(const Value& value, const Scope& scope) const;
  struct WideBounds {  // of a sum: its parts reach their ends on different devices, so their total may lie beyond 64
                       // bits
    Wide least;
    Wide most;
  };
  [[nodiscard]] WideBounds bounds_of_sum(const Value& value, const Scope& scope) const;
  [[nodiscard]] unsigned low_zeros(const Value& value) const;
  [[nodiscard]] Cut cut_where_reaches(const Value& value, std::uint64_t threshold, const Scope& scope) const;
  [[nodiscard]] Value sum_part(const Value& sum, bool first) const;

  Computed compute64(unsigned operation, const Value& a, const Value& b, const Scope& scope);
  Computed with_number(unsigned operation, const Value& a, std::uint64_t b, const Scope& scope);
  Computed number_with(unsigned operation, std::uint64_t a, const Value& b, const Scope& scope);
  Computed sum_with_number(unsigned operation, const Value& a, std::uint64_t b, const Scope& scope);
  Computed two_functions(unsigned operation, const Value& a, const Value& b, const Scope& scope);
  Computed elementwise(const Instruction& at, const Value& a, const Value& b);
  Computed add(const Value& a, std::uint64_t b, const Scope& scope);
  Computed subtract_from(std::uint64_t a, const Value& b, const Scope& scope);
  Computed mask(const Value& a, std::uint64_t b, const Scope& scope);
  Computed set_bits(unsigned operation, const Value& a, std::uint64_t b, const Scope& scope);
  Computed remainder(const Value& a, std::uint64_t b, const Scope& scope);
  Computed shift_left(const Value& a, unsigned by, const Scope& scope);
  Computed shift_signed(const Value& a, unsigned by, const Scope& scope);

  [[nodiscard]] Compared compare_accesses(const Instruction& at, const Value& a, const Value& b,
                                          const Scope& scope) const;
  Compared compare_with_number(unsigned operation, const Value& a, std::uint64_t limit, unsigned bits,
                               const Scope& scope);
  Compared compare64(unsigned operation, const Value& a, std::uint64_t b, const Scope& scope);
  Compared compare_function(unsigned operation, const Value& a, std::uint64_t b, const Scope& scope);
  Compared compare_sum(unsigned operation, const Value& a, std::uint64_t b, const Scope& scope);
  [[nodiscard]] std::variant<bool, device::Span> at_least(const Value& a, std::uint64_t b, const Scope& scope) const;
  [[nodiscard]] std::variant<bool, Cut> sum_at_least(const Value& a, std::uint64_t b, const Scope& scope) const;

  std::vector<Function> functions_;
  std::vector<Sum> sums_;
  std::vector<PerAccess> tables_;
  std::vector<std::string> reasons_;
};

}  // namespace hf::bpf
