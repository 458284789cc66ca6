// Evaluate: the arithmetic and the comparisons of BPF on plain numbers, as the kernel defines them.
#pragma once

#include <cstdint>
#include <optional>

#include "core/bpf/instruction.h"

namespace hf::bpf {

enum class Width : std::uint8_t { w32, w64 };

constexpr Width width_of(const Instruction& at) {
  return class_of(at) == BPF_ALU || class_of(at) == BPF_JMP32 ? Width::w32 : Width::w64;
}

// dst `at` src; nullopt for an instruction that does not exist.
std::optional<std::uint64_t> compute(const Instruction& at, std::uint64_t dst, std::uint64_t src);
std::optional<bool> holds(const Instruction& at, std::uint64_t dst, std::uint64_t src);

std::uint64_t sign_extend(std::uint64_t value, unsigned bits);
std::uint64_t truncate(std::uint64_t value, unsigned bits);
constexpr std::uint64_t immediate(const Instruction& at) { return std::uint64_t(std::int64_t(at.imm)); }
unsigned bytes_of_access(const Instruction& at);  // of a load or store: 1, 2, 4 or 8

}  // namespace hf::bpf
