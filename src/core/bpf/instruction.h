// Instruction: the BPF code of a device filter as the kernel holds it, and as hex text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <linux/bpf.h>

#include "core/base/result.h"

namespace hf::bpf {

using Instruction = ::bpf_insn;
using Code = std::vector<Instruction>;

bool same(const Code& a, const Code& b);
std::size_t hash_of(const Code& code);

// A program that can be run but not read as rules, and why.
struct Opaque {
  std::string why;

  friend bool operator==(const Opaque&, const Opaque&) = default;
};

enum class Verdict : std::uint8_t { deny, allow };

template <class T>
using Readable = std::expected<T, Opaque>;

// The names of the kernel functions that call instructions of a program read back from the kernel go to, by the number
// in the instruction. Programs as written carry helper ids there instead, which need no names.
using CallNames = std::unordered_map<std::int32_t, std::string>;

// 16 hex digits a line, the bytes of struct bpf_insn in memory order; blank lines and "# …" are skipped.
Result<Code> parse_hex(std::string_view text);
std::string to_hex(const Code& code);

// Checks what every valid program has: an end, jumps that stay inside, no half of a two-part load. The error names the
// instruction.
Result<void> check_shape(const Code& code);

// The mode of loads that extend the sign. Debian 12's headers do not have it yet.
inline constexpr unsigned kSignExtending = 0x80;  // BPF_MEMSX

// What a program runs on.
inline constexpr unsigned kRegisters = 12;  // the eleven there are, and r11, which only constant blinding uses
inline constexpr std::size_t kMostFrames = 8;
inline constexpr std::int64_t kStackBytes = 512;

// Parts of an instruction, named.
constexpr unsigned class_of(const Instruction& at) { return BPF_CLASS(at.code); }
constexpr unsigned operation_of(const Instruction& at) { return BPF_OP(at.code); }
constexpr bool is_wide_load(const Instruction& at) { return at.code == (BPF_LD | BPF_IMM | BPF_DW); }
constexpr bool is_jump_class(const Instruction& at) { return class_of(at) == BPF_JMP || class_of(at) == BPF_JMP32; }
constexpr bool is_exit(const Instruction& at) { return at.code == (BPF_JMP | BPF_EXIT); }
constexpr bool is_call(const Instruction& at) { return at.code == (BPF_JMP | BPF_CALL); }
constexpr bool is_always_jump(const Instruction& at) { return is_jump_class(at) && operation_of(at) == BPF_JA; }

// Calls within the program. As written, imm is the distance; read back from the kernel, off is, and imm counts
// functions.
constexpr bool is_own_call(const Instruction& at) { return is_call(at) && at.src_reg == BPF_PSEUDO_CALL; }

constexpr bool has_valid_registers(const Instruction& at) { return at.dst_reg < kRegisters && at.src_reg < kRegisters; }

// Calls the member of a run through a program that is for the class of the instruction.
template <class Run, class Path>
auto execute(Run& run, Path& path, const Instruction& at) {
  switch (class_of(at)) {
    case BPF_ALU:
    case BPF_ALU64: return run.arithmetic(path, at);
    case BPF_JMP:
    case BPF_JMP32: return run.jump(path, at);
    case BPF_LDX: return run.load(path, at);
    case BPF_ST:
    case BPF_STX: return run.store(path, at);
    default: return run.load_wide(path, at);
  }
}

// Where a jump, a conditional jump or a call within the program goes to, as an index that may lie outside the code.
std::int64_t target_of(const Instruction& at, std::size_t index);

}  // namespace hf::bpf
