#include "core/bpf/cell.h"

#include <string>
#include <utility>

#include "core/bpf/evaluate.h"

namespace hf::bpf {
namespace {

std::unexpected<Opaque> opaque(std::string why) { return std::unexpected(Opaque{std::move(why)}); }

Readable<Cell> move(const Instruction& at, const Cell& src) {
  if (src.tag == Cell::Tag::unset) {
    return opaque("uses a register before setting it");
  }
  if (src.tag != Cell::Tag::number) {
    const bool whole = class_of(at) == BPF_ALU64 && at.off == 0;
    return whole ? src : unknown();
  }
  const std::optional<std::uint64_t> moved = compute(at, 0, src.bits);
  return moved ? number(*moved) : unknown();
}

Readable<Cell> move_address(const Instruction& at, const Cell& dst, const Cell& src) {
  const bool adds = operation_of(at) == BPF_ADD;
  const bool subtracts = operation_of(at) == BPF_SUB;
  if (class_of(at) == BPF_ALU64 && (adds || subtracts) && dst.is_address() && src.tag == Cell::Tag::number) {
    return Cell{dst.tag, adds ? dst.bits + src.bits : dst.bits - src.bits, dst.frame};
  }
  if (class_of(at) == BPF_ALU64 && adds && src.is_address() && dst.tag == Cell::Tag::number) {
    return Cell{src.tag, src.bits + dst.bits, src.frame};
  }
  return opaque("computes with an address");
}

}  // namespace

Readable<Cell> compute(const Instruction& at, const Cell& dst, const Cell& src) {
  if (operation_of(at) == BPF_MOV) {
    return move(at, src);
  }
  if (dst.tag == Cell::Tag::unset || src.tag == Cell::Tag::unset) {
    return opaque("uses a register before setting it");
  }
  if (dst.is_address() || src.is_address()) {
    return move_address(at, dst, src);
  }
  if (!compute(at, 0, 1)) {
    return opaque("has an unknown arithmetic instruction");
  }
  const bool known = dst.tag == Cell::Tag::number && src.tag == Cell::Tag::number;
  return known ? number(*compute(at, dst.bits, src.bits)) : unknown();
}

Cell read_stack(const Stack& stack, std::int64_t offset, unsigned bytes) {
  if (const auto spilled = stack.addresses.find(offset); spilled != stack.addresses.end() && bytes == 8) {
    return spilled->second;
  }
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    const auto byte = stack.bytes.find(offset + i);
    if (byte == stack.bytes.end() || !byte->second) {
      return unknown();
    }
    value |= std::uint64_t(*byte->second) << (8 * i);
  }
  return number(value);
}

void write_stack(Stack& stack, std::int64_t offset, unsigned bytes, const Cell& value) {
  std::erase_if(stack.addresses,
                [&](const auto& spilled) { return spilled.first < offset + bytes && offset < spilled.first + 8; });
  for (unsigned i = 0; i < bytes; ++i) {
    const bool known = value.tag == Cell::Tag::number;
    stack.bytes[offset + i] = known ? std::optional(std::uint8_t(value.bits >> (8 * i))) : std::nullopt;
  }
  if (value.is_address() && bytes == 8) {
    stack.addresses[offset] = value;
  }
}

}  // namespace hf::bpf
