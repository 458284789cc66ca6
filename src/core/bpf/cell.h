// Cell: what a register of the interpreter holds, and the stack that keeps such values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "core/bpf/instruction.h"

namespace hf::bpf {

struct Cell {
  enum class Tag : std::uint8_t { unset, number, unknown, context, stack };

  Tag tag = Tag::unset;
  std::uint64_t bits = 0;  // the number, or the offset of an address
  std::size_t frame = 0;   // of a stack address

  [[nodiscard]] bool is_address() const { return tag == Tag::context || tag == Tag::stack; }
};

inline Cell number(std::uint64_t bits) { return {Cell::Tag::number, bits, 0}; }
inline Cell unknown() { return {Cell::Tag::unknown, 0, 0}; }
inline Cell unknown_address() { return {Cell::Tag::unknown, 1, 0}; }  // of a map

// dst `at` src, of an arithmetic instruction.
Readable<Cell> compute(const Instruction& at, const Cell& dst, const Cell& src);

// One frame's memory. Bytes that were never written, or that hold part of something unknown, are nullopt.
struct Stack {
  std::map<std::int64_t, std::optional<std::uint8_t>> bytes;
  std::map<std::int64_t, Cell> addresses;  // spilled whole, by offset
};

Cell read_stack(const Stack& stack, std::int64_t offset, unsigned bytes);
void write_stack(Stack& stack, std::int64_t offset, unsigned bytes, const Cell& value);

}  // namespace hf::bpf
