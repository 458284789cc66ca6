#include "core/bpf/producer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

namespace hf::bpf {
namespace {

constexpr std::uint8_t kLoadWord = BPF_LDX | BPF_MEM | BPF_W;
constexpr std::uint8_t kLoadHalf = BPF_LDX | BPF_MEM | BPF_H;

bool is_field_load(const Instruction& at, std::uint8_t code, unsigned to, std::int16_t offset) {
  return at.code == code && at.dst_reg == to && at.src_reg == 1 && at.off == offset;
}

// The end of the four loads with which all runtimes begin: r2 = kind, r3 = access, r4 = major, r5 = minor. Constant
// blinding puts instructions between them.
std::optional<std::size_t> end_of_loads(const Code& code, std::uint8_t first_load) {
  std::size_t at = 0;
  const auto next = [&](std::uint8_t load, unsigned to, std::int16_t offset) {
    while (at < code.size() && !is_field_load(code[at], load, to, offset)) {
      if (is_jump_class(code[at])) {
        return false;
      }
      ++at;
    }
    return at++ < code.size();
  };
  const bool found = !code.empty() && is_field_load(code.front(), first_load, 2, 0) && next(first_load, 2, 0) &&
                     next(kLoadWord, 3, 0) && next(kLoadWord, 4, 4) && next(kLoadWord, 5, 8);
  return found ? std::optional(at) : std::nullopt;
}

// runc ends its rules with a 32-bit move into r0, crun and lxc with a 64-bit one.
std::optional<unsigned> class_of_result(const Code& code) {
  for (const Instruction& at : code) {
    const bool arithmetic = class_of(at) == BPF_ALU || class_of(at) == BPF_ALU64;
    if (arithmetic && at.dst_reg == 0 && operation_of(at) == BPF_MOV) {
      return class_of(at);
    }
  }
  return std::nullopt;
}

// lxc tests the access of a rule before the kind; crun the kind first. The access is tested in r1.
bool tests_access_first(const Code& code, std::size_t start) {
  bool access_tested = false;
  for (std::size_t i = start; i < code.size(); ++i) {
    if (!is_jump_class(code[i])) {
      continue;
    }
    if (access_tested) {
      return code[i].dst_reg == 2;
    }
    access_tested = code[i].dst_reg == 1;
  }
  return false;
}

}  // namespace

std::string producer_of(const Code& code, std::string_view program_name) {
  if (program_name == "sd_devices") {
    return "systemd";
  }
  if (program_name == kOurName) {
    return std::string(kOurName);
  }
  if (end_of_loads(code, kLoadHalf)) {
    return "libnvidia-container";
  }
  const std::optional<std::size_t> start = end_of_loads(code, kLoadWord);
  const std::optional<unsigned> result = class_of_result(code);
  if (!start || !result || !program_name.empty()) {
    return "";
  }
  if (*result == BPF_ALU) {
    return "runc";
  }
  return tests_access_first(code, *start) ? "lxc" : "crun";
}

}  // namespace hf::bpf
