// Assembler: turns instructions with jumps to labels into code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/bpf/instruction.h"

namespace hf::bpf {

enum class Register : std::uint8_t { r0, r1, r2, r3, r4, r5 };

class Assembler {
 public:
  struct Label {
    std::size_t index = 0;
  };

  Label label();            // a new one
  void place(Label label);  // here

  void load_word(Register to, Register from, std::int16_t offset);
  void move(Register to, std::int32_t number);
  void and_with(Register to, std::int32_t number);
  void shift_right(Register to, std::int32_t bits);
  void shift_right(Register to, Register bits);
  void jump(Label target);
  void jump_if(std::uint8_t operation, Register left, std::uint32_t right, Label target);  // BPF_JEQ, BPF_JGE, …
  void exit();
  void append(const Code& code);

  [[nodiscard]] std::size_t size() const { return code_.size(); }

  // Fails where a jump is farther than an instruction can encode.
  Result<Code> finish();

 private:
  struct Jump {
    std::size_t at;
    Label target;
  };

  void emit(unsigned code, Register dst, Register src, std::int16_t off, std::int32_t imm);

  Code code_;
  std::vector<Jump> jumps_;
  std::vector<std::size_t> places_;
};

}  // namespace hf::bpf
