#include "core/bpf/instruction.h"

#include <array>
#include <cstring>
#include <functional>
#include <optional>

#include "core/base/text.h"
#include "core/device/access.h"
#include "core/device/device.h"

namespace hf::bpf {
namespace {

static_assert(unsigned(device::Access::mknod) == BPF_DEVCG_ACC_MKNOD);
static_assert(unsigned(device::Access::read) == BPF_DEVCG_ACC_READ);
static_assert(unsigned(device::Access::write) == BPF_DEVCG_ACC_WRITE);
static_assert(unsigned(device::Kind::block) == BPF_DEVCG_DEV_BLOCK);
static_assert(unsigned(device::Kind::character) == BPF_DEVCG_DEV_CHAR);
static_assert(sizeof(Instruction) == 8);

// Kernel: a program may have a million instructions (BPF_COMPLEXITY_LIMIT_INSNS).
constexpr std::size_t kMostInstructions = 1'000'000;

std::string_view bytes_of(const Code& code) {
  return {reinterpret_cast<const char*>(code.data()), code.size() * sizeof(Instruction)};
}

Result<Instruction> parse_instruction(std::string_view digits, std::size_t line) {
  const std::string where = "parse bytecode line " + std::to_string(line) + ": ";
  if (digits.size() != 2 * sizeof(Instruction)) {
    return fail(std::errc::invalid_argument, where + quote(digits) + " is not 16 hex digits");
  }
  std::array<std::uint8_t, sizeof(Instruction)> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::optional<std::uint8_t> byte = parse_number<std::uint8_t>(digits.substr(2 * i, 2), 16);
    if (!byte) {
      return fail(std::errc::invalid_argument, where + quote(digits) + " is not 16 hex digits");
    }
    bytes[i] = *byte;
  }
  Instruction instruction{};
  std::memcpy(&instruction, bytes.data(), bytes.size());
  return instruction;
}

std::unexpected<Error> misshapen(std::size_t index, const std::string& why) {
  return fail(std::errc::invalid_argument, "bytecode instruction " + std::to_string(index) + ": " + why);
}

bool falls_through(const Instruction& at) { return !is_exit(at) && !is_always_jump(at); }

}  // namespace

bool same(const Code& a, const Code& b) { return bytes_of(a) == bytes_of(b); }

std::size_t hash_of(const Code& code) { return std::hash<std::string_view>()(bytes_of(code)); }

Result<Code> parse_hex(std::string_view text) {
  Code code;
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    const std::string_view digits = trim(line);
    if (!digits.empty() && !digits.starts_with('#')) {
      code.push_back(TRY(parse_instruction(digits, number)));
    }
  }
  return code;
}

std::string to_hex(const Code& code) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  std::size_t column = 0;
  for (const char byte : bytes_of(code)) {
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4U];
    text += kDigits[value & 0xfU];
    column = (column + 1) % sizeof(Instruction);
    text += column == 0 ? "\n" : "";
  }
  return text;
}

Result<void> check_shape(const Code& code) {
  if (code.empty()) {
    return fail(std::errc::invalid_argument, "bytecode: no instructions");
  }
  if (code.size() > kMostInstructions) {
    return fail(std::errc::invalid_argument, "bytecode: more than a million instructions");
  }
  std::vector<bool> second_half(code.size());
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (is_wide_load(code[i])) {
      if (i + 1 == code.size() || code[i + 1].code != 0) {
        return misshapen(i, "the second half of a 64-bit load is missing (truncated?)");
      }
      second_half[++i] = true;
    }
  }
  for (std::size_t i = 0; i < code.size(); ++i) {
    const Instruction& at = code[i];
    const bool jumps = is_own_call(at) || (is_jump_class(at) && !is_call(at) && !is_exit(at));
    if (second_half[i] || !jumps) {
      continue;
    }
    const std::int64_t target = target_of(at, i);
    if (target < 0 || target >= std::int64_t(code.size()) || second_half[std::size_t(target)]) {
      return misshapen(i, "jumps out of the program (truncated?)");
    }
  }
  if (second_half.back() || falls_through(code.back())) {
    return misshapen(code.size() - 1, "the program has no end (truncated?)");
  }
  return {};
}

std::int64_t target_of(const Instruction& at, std::size_t index) {
  const auto next = std::int64_t(index) + 1;
  if (is_own_call(at)) {
    return next + (at.off != 0 ? at.off : at.imm);
  }
  const bool long_jump = at.code == (BPF_JMP32 | BPF_JA);
  return next + (long_jump ? at.imm : at.off);
}

}  // namespace hf::bpf
