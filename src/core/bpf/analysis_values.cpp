// Analysis of instructions that compute, load or store a value.
#include <cstdint>
#include <optional>
#include <variant>

#include "core/bpf/analysis.h"
#include "core/bpf/evaluate.h"

namespace hf::bpf {
namespace {

using Tag = Value::Tag;

}  // namespace

Analysis::Next Analysis::arithmetic(Path& path, const Instruction& at) {
  const unsigned operation = operation_of(at);
  const bool by_register = BPF_SRC(at.code) == BPF_X && operation != BPF_NEG && operation != BPF_END;
  const Value dst = path.registers[at.dst_reg];
  const Value src = by_register ? path.registers[at.src_reg] : Symbols::number(immediate(at));
  if (operation == BPF_XOR && by_register && at.dst_reg == at.src_reg) {
    return set(path, at.dst_reg, Symbols::number(0));  // how constant blinding writes "r = 0"
  }
  if (src.tag == Tag::unset || (dst.tag == Tag::unset && operation != BPF_MOV)) {
    return give_up("uses a register before setting it");
  }
  if (operation == BPF_MOV && (src.is_address() || src.is_unknown() || !compute(at, 0, 1))) {
    const bool whole = class_of(at) == BPF_ALU64 && at.off == 0;
    return set(path, at.dst_reg, whole ? src : outside(symbols_));
  }
  if (operation != BPF_MOV && (dst.is_address() || src.is_address())) {
    return move_address(path, at, src);
  }
  if (!compute(at, 0, 1)) {
    return give_up("has an unknown arithmetic instruction");
  }
  return set(path, at.dst_reg, symbols_.compute(at, dst, src, path.scope()));
}

Analysis::Next Analysis::move_address(Path& path, const Instruction& at, const Value& src) {
  const Value dst = symbols_.simplify(path.registers[at.dst_reg], path.scope());
  const Value by = symbols_.simplify(src, path.scope());
  const bool adds = operation_of(at) == BPF_ADD;
  if (class_of(at) != BPF_ALU64 || (!adds && operation_of(at) != BPF_SUB)) {
    return give_up("computes with an address");
  }
  if (dst.is_address() && by.tag == Tag::number) {
    return set(path, at.dst_reg, Value{dst.tag, dst.frame, adds ? dst.bits + by.bits : dst.bits - by.bits});
  }
  if (adds && by.is_address() && dst.tag == Tag::number) {
    return set(path, at.dst_reg, Value{by.tag, by.frame, by.bits + dst.bits});
  }
  return give_up("computes with an address");
}

Analysis::Next Analysis::load_wide(Path& path, const Instruction& at) {
  if (!is_wide_load(at)) {
    return give_up("has an unknown load");
  }
  if (at.src_reg == 0) {
    const std::uint64_t high = std::uint32_t(code_[path.at + 1].imm);
    return set(path, at.dst_reg, Symbols::number(high << 32U | std::uint32_t(at.imm)), 2);
  }
  if (at.src_reg == BPF_PSEUDO_FUNC) {
    return give_up("hands one of its functions to a helper");
  }
  uses_map_ = true;
  return set(path, at.dst_reg, Value{Tag::map, 0, outside(symbols_).bits}, 2);
}

Analysis::Next Analysis::load(Path& path, const Instruction& at) {
  const bool extends = BPF_MODE(at.code) == kSignExtending;
  if (BPF_MODE(at.code) != BPF_MEM && !extends) {
    return give_up("has an unknown load");
  }
  const Value base = path.registers[at.src_reg];
  const auto offset = std::int64_t(base.bits + std::uint64_t(std::int64_t(at.off)));
  const unsigned bytes = bytes_of_access(at);
  Computed loaded = outside(symbols_);
  switch (base.tag) {
    case Tag::context: {
      const std::optional<Value> field = read_context(offset, bytes);
      if (!field) {
        return give_up("reads beside the request");
      }
      loaded = *field;
      break;
    }
    case Tag::stack:
      if (!is_on_stack(path, {base.frame, offset, bytes})) {
        return give_up("reads beside its stack");
      }
      loaded = read_stack(symbols_, path, {base.frame, offset, bytes});
      break;
    case Tag::unknown:
    case Tag::map: break;
    default: return give_up("reads through something that is no address");
  }
  if (extends) {
    if (const Value* value = std::get_if<Value>(&loaded)) {
      loaded = value->is_address() ? outside(symbols_) : extended(path, *value, bytes);
    }
  }
  return set(path, at.dst_reg, loaded);
}

Computed Analysis::extended(const Path& path, const Value& value, unsigned bytes) {
  const Value simple = symbols_.simplify(value, path.scope());
  if (simple.tag == Tag::access) {
    return CutAccess{simple.bits};
  }
  return symbols_.sign_extend(simple, bytes * 8, path.scope());
}

// Kernel: the three 32-bit fields of the request; only the first may be read in parts (cgroup_dev_is_valid_access).
std::optional<Value> Analysis::read_context(std::int64_t offset, unsigned bytes) {
  if (bytes > 4 || offset < 0 || offset > 12 - std::int64_t(bytes) || offset % bytes != 0 ||
      (offset >= 4 && bytes != 4)) {
    return std::nullopt;
  }
  if (offset >= 4) {
    return symbols_.field(offset == 4 ? Field::major : Field::minor);
  }
  PerAccess table{};
  for (unsigned i = 0; i < kAccessValues; ++i) {
    const std::uint64_t field = std::uint64_t(kind_at(i)) | std::uint64_t(combination_at(i)) << 16U;
    table[i] = truncate(field >> (8 * offset), 8 * bytes);
  }
  return symbols_.per_access(table);
}

Analysis::Next Analysis::store(Path& path, const Instruction& at) {
  if (BPF_MODE(at.code) != BPF_MEM) {
    return give_up("has an atomic instruction");
  }
  const Value base = path.registers[at.dst_reg];
  const unsigned bytes = bytes_of_access(at);
  Value value = class_of(at) == BPF_ST ? Symbols::number(immediate(at)) : path.registers[at.src_reg];
  if (value.tag == Tag::unset) {
    return give_up("uses a register before setting it");
  }
  if (base.is_unknown()) {
    forget_stacks(path);  // mostly a map's memory, but it may be the program's own stack
    return advance(path);
  }
  if (base.tag != Tag::stack) {
    return give_up("writes through something that is no address of its own");
  }
  const auto offset = std::int64_t(base.bits + std::uint64_t(std::int64_t(at.off)));
  if (!is_on_stack(path, {base.frame, offset, bytes})) {
    return give_up("writes beside its stack");
  }
  if (bytes < 8) {
    const Computed stored =
        value.is_address() ? Computed(outside(symbols_)) : symbols_.truncate(value, 8 * bytes, path.scope());
    if (const Cut* cut = std::get_if<Cut>(&stored)) {
      return split(path, *cut);
    }
    if (const CutAccess* cut = std::get_if<CutAccess>(&stored)) {
      return split(path, *cut);
    }
    value = std::get<Value>(stored);
  }
  spend(path.frames[base.frame].slots.size());
  write_stack(path.frames[base.frame].slots, {offset, bytes, value});
  return advance(path);
}

}  // namespace hf::bpf
