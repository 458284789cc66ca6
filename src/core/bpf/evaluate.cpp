#include "core/bpf/evaluate.h"

#include <bit>

namespace hf::bpf {
namespace {

using Signed = std::int64_t;

std::uint64_t divide(std::uint64_t a, std::uint64_t b) { return b == 0 ? 0 : a / b; }
std::uint64_t remainder(std::uint64_t a, std::uint64_t b) { return b == 0 ? a : a % b; }

std::uint64_t divide_signed(std::uint64_t a, std::uint64_t b) {
  if (b == 0) {
    return 0;
  }
  return b == ~std::uint64_t(0) ? 0 - a : std::uint64_t(Signed(a) / Signed(b));
}

std::uint64_t remainder_signed(std::uint64_t a, std::uint64_t b) {
  if (b == 0) {
    return a;
  }
  return b == ~std::uint64_t(0) ? 0 : std::uint64_t(Signed(a) % Signed(b));
}

std::optional<std::uint64_t> swap_bytes(const Instruction& at, std::uint64_t value) {
  if (at.imm != 16 && at.imm != 32 && at.imm != 64) {
    return std::nullopt;
  }
  const auto bits = unsigned(at.imm);
  const bool always = class_of(at) == BPF_ALU64;  // bswap; the other two depend on the machine's order
  const bool to_big = BPF_SRC(at.code) == BPF_TO_BE;
  const bool swaps = always || to_big == (std::endian::native == std::endian::little);
  return swaps ? std::uint64_t(__builtin_bswap64(value)) >> (64 - bits) : truncate(value, bits);
}

std::optional<std::uint64_t> move(const Instruction& at, std::uint64_t src, unsigned bits) {
  switch (at.off) {
    case 0: return src;
    case 8:
    case 16: return sign_extend(src, unsigned(at.off));
    case 32: return bits == 64 ? std::optional(sign_extend(src, 32)) : std::nullopt;
    default: return std::nullopt;  // address space casts, per-CPU addresses
  }
}

}  // namespace

std::optional<std::uint64_t> compute(const Instruction& at, std::uint64_t dst, std::uint64_t src) {
  if (operation_of(at) == BPF_END) {
    return swap_bytes(at, dst);
  }
  const unsigned bits = width_of(at) == Width::w32 ? 32 : 64;
  const bool is_signed = at.off == 1 && (operation_of(at) == BPF_DIV || operation_of(at) == BPF_MOD);
  std::uint64_t a = truncate(dst, bits);
  std::uint64_t b = truncate(src, bits);
  if (is_signed || operation_of(at) == BPF_ARSH) {
    a = sign_extend(a, bits);
    b = is_signed ? sign_extend(b, bits) : b;
  }
  const unsigned shift = unsigned(b) & (bits - 1);
  std::optional<std::uint64_t> result;
  switch (operation_of(at)) {
    case BPF_ADD: result = a + b; break;
    case BPF_SUB: result = a - b; break;
    case BPF_MUL: result = a * b; break;
    case BPF_DIV: result = is_signed ? divide_signed(a, b) : divide(a, b); break;
    case BPF_MOD: result = is_signed ? remainder_signed(a, b) : remainder(a, b); break;
    case BPF_OR: result = a | b; break;
    case BPF_AND: result = a & b; break;
    case BPF_XOR: result = a ^ b; break;
    case BPF_LSH: result = a << shift; break;
    case BPF_RSH: result = a >> shift; break;
    case BPF_ARSH: result = std::uint64_t(Signed(a) >> shift); break;
    case BPF_NEG: result = 0 - a; break;
    case BPF_MOV: result = move(at, b, bits); break;
    default: return std::nullopt;
  }
  return result ? std::optional(truncate(*result, bits)) : std::nullopt;
}

std::optional<bool> holds(const Instruction& at, std::uint64_t dst, std::uint64_t src) {
  const unsigned bits = width_of(at) == Width::w32 ? 32 : 64;
  const std::uint64_t a = truncate(dst, bits);
  const std::uint64_t b = truncate(src, bits);
  const auto sa = Signed(sign_extend(a, bits));
  const auto sb = Signed(sign_extend(b, bits));
  switch (operation_of(at)) {
    case BPF_JEQ: return a == b;
    case BPF_JNE: return a != b;
    case BPF_JGT: return a > b;
    case BPF_JGE: return a >= b;
    case BPF_JLT: return a < b;
    case BPF_JLE: return a <= b;
    case BPF_JSET: return (a & b) != 0;
    case BPF_JSGT: return sa > sb;
    case BPF_JSGE: return sa >= sb;
    case BPF_JSLT: return sa < sb;
    case BPF_JSLE: return sa <= sb;
    default: return std::nullopt;
  }
}

std::uint64_t sign_extend(std::uint64_t value, unsigned bits) {
  const unsigned unused = 64 - bits;
  return std::uint64_t(Signed(value << unused) >> unused);
}

std::uint64_t truncate(std::uint64_t value, unsigned bits) {
  return bits >= 64 ? value : value & ((std::uint64_t(1) << bits) - 1);
}

unsigned bytes_of_access(const Instruction& at) {
  switch (BPF_SIZE(at.code)) {
    case BPF_B: return 1;
    case BPF_H: return 2;
    case BPF_W: return 4;
    default: return 8;
  }
}

}  // namespace hf::bpf
