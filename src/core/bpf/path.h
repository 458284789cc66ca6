// Path: the requests that take the same way through a program, and what its registers and stack hold for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/bpf/access_field.h"
#include "core/bpf/instruction.h"
#include "core/bpf/region.h"
#include "core/bpf/symbolic.h"

namespace hf::bpf {

struct Slot {
  std::int64_t offset = 0;
  unsigned bytes = 0;
  Value value;

  friend bool operator==(const Slot&, const Slot&) = default;
};

struct Frame {
  std::size_t return_to = 0;
  std::array<Value, 4> saved;  // r6 to r9 of the caller
  std::vector<Slot> slots;     // by offset, disjoint; bytes outside were never written, or hold something unknown

  friend bool operator==(const Frame&, const Frame&) = default;
};

struct Path {
  std::size_t at = 0;
  AccessMask accesses = kAllAccesses;
  std::array<Value, kRegisters> registers;
  std::vector<Frame> frames;
  bool is_refused = false;  // the error that the kernel would return now: none, or EPERM
  Region region;

  [[nodiscard]] Scope scope() const { return {region, accesses}; }
  [[nodiscard]] bool continues_like(const Path& other) const {
    return accesses == other.accesses && is_refused == other.is_refused && registers == other.registers &&
           frames == other.frames;
  }
};

// What it costs to keep or to copy a path.
std::size_t weight_of(const Path& path);

// What a load or a store touches of the stack.
struct StackRange {
  std::size_t frame;
  std::int64_t offset;
  unsigned bytes;
};

bool is_on_stack(const Path& path, const StackRange& range);
Computed read_stack(Symbols& symbols, const Path& path, const StackRange& range);
void write_stack(std::vector<Slot>& slots, const Slot& written);
void forget_stacks(Path& path);

// A value that neither the code nor the request decides.
Value outside(Symbols& symbols);

}  // namespace hf::bpf
