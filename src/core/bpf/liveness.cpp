#include "core/bpf/liveness.h"

#include <algorithm>
#include <cstddef>

namespace hf::bpf {
namespace {

constexpr RegisterMask kAll = 0xfff;

RegisterMask bit(unsigned number) { return RegisterMask(1U << number); }

struct Effect {
  RegisterMask reads = 0;
  RegisterMask writes = 0;
};

Effect effect_of_arithmetic(const Instruction& at) {
  Effect effect{0, bit(at.dst_reg)};
  const bool unary = operation_of(at) == BPF_NEG || operation_of(at) == BPF_END;
  if (operation_of(at) != BPF_MOV) {
    effect.reads = bit(at.dst_reg);
  }
  if (BPF_SRC(at.code) == BPF_X && !unary) {
    effect.reads = RegisterMask(effect.reads | bit(at.src_reg));
  }
  const bool clears = operation_of(at) == BPF_XOR && BPF_SRC(at.code) == BPF_X && at.dst_reg == at.src_reg;
  return clears ? Effect{0, bit(at.dst_reg)} : effect;
}

Effect effect_of_jump(const Instruction& at) {
  if (is_exit(at)) {
    return {bit(0), 0};
  }
  if (is_call(at)) {
    return {0x3e, 0x3f};
  }
  if (is_always_jump(at)) {
    return {};
  }
  return {RegisterMask(bit(at.dst_reg) | (BPF_SRC(at.code) == BPF_X ? bit(at.src_reg) : 0)), 0};
}

Effect effect_of(const Instruction& at) {
  switch (class_of(at)) {
    case BPF_ALU:
    case BPF_ALU64: return effect_of_arithmetic(at);
    case BPF_JMP:
    case BPF_JMP32: return effect_of_jump(at);
    case BPF_LD: return is_wide_load(at) ? Effect{0, bit(at.dst_reg)} : Effect{};  // its second half does nothing
    case BPF_LDX: return {bit(at.src_reg), bit(at.dst_reg)};
    case BPF_ST: return {bit(at.dst_reg), 0};
    default: return {RegisterMask(bit(at.dst_reg) | bit(at.src_reg)), 0};
  }
}

RegisterMask after(const Code& code, const std::vector<RegisterMask>& live, std::size_t index) {
  const Instruction& at = code[index];
  unsigned mask = 0;
  if (is_jump_class(at) && !is_call(at) && !is_exit(at)) {
    mask |= live[std::size_t(target_of(at, index))];
  }
  if (!is_exit(at) && !is_always_jump(at) && index + 1 < code.size()) {
    mask |= live[index + 1];
  }
  return RegisterMask(mask);
}

}  // namespace

std::vector<RegisterMask> live_registers(const Code& code) {
  if (std::ranges::any_of(code, is_own_call)) {
    return std::vector<RegisterMask>(code.size(), kAll);
  }
  // Passes go backwards until nothing changes: code without backward jumps needs one, and one more to see that. Where
  // it takes too many, all registers count as read.
  constexpr int kMostPasses = 16;
  std::vector<RegisterMask> live(code.size());
  for (int pass = 0; pass < kMostPasses; ++pass) {
    bool changed = false;
    for (std::size_t index = code.size(); index-- > 0;) {
      const Effect effect = effect_of(code[index]);
      const auto before = RegisterMask((after(code, live, index) & ~effect.writes) | effect.reads);
      changed = changed || before != live[index];
      live[index] = before;
    }
    if (!changed) {
      return live;
    }
  }
  return std::vector<RegisterMask>(code.size(), kAll);
}

}  // namespace hf::bpf
