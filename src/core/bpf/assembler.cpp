#include "core/bpf/assembler.h"

#include <cassert>
#include <limits>
#include <utility>

namespace hf::bpf {
namespace {

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

}  // namespace

Assembler::Label Assembler::label() {
  places_.push_back(kNowhere);
  return {places_.size() - 1};
}

void Assembler::place(Label label) { places_[label.index] = code_.size(); }

void Assembler::emit(unsigned code, Register dst, Register src, std::int16_t off, std::int32_t imm) {
  Instruction instruction{};
  instruction.code = std::uint8_t(code);
  instruction.dst_reg = std::uint8_t(dst) & 0xfU;
  instruction.src_reg = std::uint8_t(src) & 0xfU;
  instruction.off = off;
  instruction.imm = imm;
  code_.push_back(instruction);
}

void Assembler::load_word(Register to, Register from, std::int16_t offset) {
  emit(BPF_LDX | BPF_MEM | BPF_W, to, from, offset, 0);
}

void Assembler::move(Register to, std::int32_t number) { emit(BPF_ALU | BPF_MOV | BPF_K, to, Register::r0, 0, number); }

void Assembler::and_with(Register to, std::int32_t number) {
  emit(BPF_ALU | BPF_AND | BPF_K, to, Register::r0, 0, number);
}

void Assembler::shift_right(Register to, std::int32_t bits) {
  emit(BPF_ALU | BPF_RSH | BPF_K, to, Register::r0, 0, bits);
}

void Assembler::shift_right(Register to, Register bits) { emit(BPF_ALU | BPF_RSH | BPF_X, to, bits, 0, 0); }

void Assembler::jump(Label target) {
  jumps_.push_back({code_.size(), target});
  emit(BPF_JMP | BPF_JA, Register::r0, Register::r0, 0, 0);
}

void Assembler::jump_if(std::uint8_t operation, Register left, std::uint32_t right, Label target) {
  jumps_.push_back({code_.size(), target});
  // Kernel: 64-bit comparisons extend the number's sign, 32-bit ones (5.1 and later) do not: only large numbers need
  // those.
  const unsigned width = right > std::uint32_t(std::numeric_limits<std::int32_t>::max()) ? BPF_JMP32 : BPF_JMP;
  emit(width | operation | BPF_K, left, Register::r0, 0, std::int32_t(right));
}

void Assembler::exit() { emit(BPF_JMP | BPF_EXIT, Register::r0, Register::r0, 0, 0); }

void Assembler::append(const Code& code) { code_.insert(code_.end(), code.begin(), code.end()); }

Result<Code> Assembler::finish() {
  for (const Jump& jump : jumps_) {
    const std::size_t place = places_[jump.target.index];
    assert(place != kNowhere);
    const std::int64_t distance = std::int64_t(place) - std::int64_t(jump.at) - 1;
    if (distance > std::numeric_limits<std::int16_t>::max() || distance < std::numeric_limits<std::int16_t>::min()) {
      return fail(std::errc::value_too_large, "write a device filter: too many rules for one program");
    }
    code_[jump.at].off = std::int16_t(distance);
  }
  return std::move(code_);
}

}  // namespace hf::bpf
