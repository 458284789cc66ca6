#include "core/bpf/path.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace hf::bpf {
namespace {

using Tag = Value::Tag;

// Of a slot with a symbolic value, the part in this range.
Computed part_of(Symbols& symbols, const Slot& slot, const StackRange& range, const Scope& scope) {
  const Computed shifted = symbols.shift_right(slot.value, 8 * unsigned(range.offset - slot.offset), scope);
  const Value* whole = std::get_if<Value>(&shifted);
  return whole != nullptr ? symbols.truncate(*whole, 8 * range.bytes, scope) : shifted;
}

}  // namespace

std::size_t weight_of(const Path& path) {
  std::size_t weight = 16 + path.region.size();
  for (const Frame& frame : path.frames) {
    weight += 4 + 4 * frame.slots.size();
  }
  return weight;
}

bool is_on_stack(const Path& path, const StackRange& range) {
  return range.frame < path.frames.size() && range.offset >= -kStackBytes && range.offset <= -std::int64_t(range.bytes);
}

Computed read_stack(Symbols& symbols, const Path& path, const StackRange& range) {
  const auto& [frame, offset, bytes] = range;
  std::uint64_t bits = 0;
  unsigned known = 0;
  for (const Slot& slot : path.frames[frame].slots) {
    if (slot.offset == offset && slot.bytes == bytes) {
      return slot.value;
    }
    if (slot.offset + slot.bytes <= offset || offset + bytes <= slot.offset) {
      continue;
    }
    if (slot.value.tag == Tag::number) {
      for (unsigned i = 0; i < slot.bytes; ++i) {
        const std::int64_t place = slot.offset + i - offset;
        if (place >= 0 && place < bytes) {
          bits |= (slot.value.bits >> (8 * i) & 0xffU) << (8 * place);
          ++known;
        }
      }
      continue;
    }
    if (slot.value.is_address() || slot.offset > offset || slot.offset + slot.bytes < offset + bytes) {
      return outside(symbols);
    }
    return part_of(symbols, slot, range, path.scope());
  }
  return known == bytes ? Symbols::number(bits) : outside(symbols);
}

void write_stack(std::vector<Slot>& slots, const Slot& written) {
  std::vector<Slot> kept;
  for (const Slot& slot : slots) {
    if (slot.offset + slot.bytes <= written.offset || written.offset + written.bytes <= slot.offset) {
      kept.push_back(slot);
      continue;
    }
    for (unsigned i = 0; i < slot.bytes && slot.value.tag == Tag::number; ++i) {
      const std::int64_t place = slot.offset + i;
      if (place < written.offset || place >= written.offset + written.bytes) {
        kept.push_back({place, 1, Symbols::number(slot.value.bits >> (8 * i) & 0xffU)});
      }
    }
  }
  kept.push_back(written);
  std::ranges::sort(kept, {}, &Slot::offset);
  slots = std::move(kept);
}

void forget_stacks(Path& path) {
  for (Frame& frame : path.frames) {
    frame.slots.clear();
  }
}

Value outside(Symbols& symbols) { return symbols.unknown("the verdict depends on something outside the program"); }

}  // namespace hf::bpf
