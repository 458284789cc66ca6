// Bytecode: analyse and interpret never disagree, never crash, never hang; what can be read can be written.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "check.h"
#include "core/bpf/analyse.h"
#include "core/bpf/generate.h"
#include "core/bpf/interpret.h"

namespace {

using namespace hf;
using bpf::Code;
using bpf::Instruction;

// Mostly instructions that exist, so that many programs are valid.
constexpr std::array<std::uint8_t, 62> kOpcodes = {
    0x61, 0x61, 0x69, 0x71, 0x79, 0x81, 0x89, 0x91, 0x62, 0x63, 0x6b, 0x73, 0x7a, 0x7b, 0x07, 0x0f,
    0x17, 0x1f, 0x27, 0x37, 0x47, 0x4f, 0x57, 0x5f, 0x67, 0x6f, 0x77, 0x7f, 0x87, 0x97, 0xa7, 0xaf,
    0xb7, 0xbf, 0xc7, 0x04, 0x0c, 0x14, 0x24, 0x34, 0x44, 0x54, 0x5c, 0x64, 0x74, 0x94, 0xa4, 0xb4,
    0xbc, 0xc4, 0xd4, 0xdc, 0x15, 0x1d, 0x25, 0x55, 0x5d, 0x65, 0xa5, 0xb5, 0x16, 0x56};
constexpr std::array<std::int32_t, 12> kNumbers = {0, 1, 2, 3, 7, 8, 16, 32, 195, 0xffff, -1, -240};
constexpr std::array<std::int16_t, 4> kContext = {0, 4, 8, 2};

Code shaped(const std::uint8_t* data, std::size_t size) {
  Code code;
  for (std::size_t at = 0; at + 4 <= size && code.size() < 60; at += 4) {
    Instruction made{};
    made.code = kOpcodes[data[at] % kOpcodes.size()];
    made.dst_reg = data[at + 1] % 7;
    made.src_reg = (data[at + 1] >> 4U) % 7;
    made.imm = kNumbers[data[at + 2] % kNumbers.size()];
    if (bpf::class_of(made) == BPF_LDX) {
      made.src_reg = data[at + 3] % 8 == 7 ? 10 : 1;
      made.off =
          made.src_reg == 10 ? std::int16_t(-8 * (1 + data[at + 2] % 4)) : kContext[data[at + 2] % kContext.size()];
    } else if (bpf::class_of(made) == BPF_ST || bpf::class_of(made) == BPF_STX) {
      made.dst_reg = 10;
      made.off = std::int16_t(-8 * (1 + data[at + 2] % 4) + data[at + 3] % 5);
    } else if (bpf::is_jump_class(made)) {
      made.off = std::int16_t(data[at + 3] % 8);
    }
    code.push_back(made);
  }
  // The end has an exit for every target a jump can have.
  Instruction end{};
  end.code = BPF_ALU64 | BPF_AND | BPF_K;
  end.imm = 1;
  code.push_back(end);
  for (int i = 0; i < 9; ++i) {
    end = {};
    end.code = BPF_JMP | BPF_EXIT;
    code.push_back(end);
  }
  return code;
}

Code raw(const std::uint8_t* data, std::size_t size) {
  Code code(size / sizeof(Instruction));
  if (!code.empty()) {
    std::memcpy(code.data(), data, code.size() * sizeof(Instruction));
  }
  return code;
}

void check_agreement(const Code& code, const device::Table& table) {
  std::vector<std::uint32_t> numbers = {0,   1,   3,     194,   195,        196,        239,
                                        240, 255, 65535, 65536, 0x7fffffff, 0x80000000, 0xffffffff};
  for (const Instruction& at : code) {
    if (numbers.size() < 24) {
      numbers.push_back(std::uint32_t(at.imm));
      numbers.push_back(0U - std::uint32_t(at.imm));
    }
  }
  std::size_t turn = code.size();
  for (const std::uint32_t major : numbers) {
    for (const std::uint32_t minor : numbers) {
      const device::Kind kind = ++turn % 3 == 0 ? device::Kind::block : device::Kind::character;
      const device::Request request{{kind, major, minor}, device::Access(1 + turn % 7)};
      const bpf::Readable<bpf::Verdict> verdict = bpf::interpret(code, request);
      check(verdict.has_value(), "what can be read can be run");
      check((*verdict == bpf::Verdict::allow) == table.allows(request), "analyse and interpret agree");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const Code code = data[0] % 8 == 0 ? raw(data + 1, size - 1) : shaped(data + 1, size - 1);
  const bpf::Readable<device::Table> table = bpf::analyse(code);
  if (!bpf::check_shape(code)) {
    check(!table, "a broken program is not read");
    return 0;
  }
  if (!table) {
    check(!table.error().why.empty(), "opaque for a reason");
    (void)bpf::interpret(code, {{device::Kind::character, 195, 0}, device::Access::read});
    return 0;
  }
  check_agreement(code, *table);
  if (code.size() < 40) {
    const Result<Code> again = bpf::generate(*table);
    check(again.has_value(), "what is read can be written");
  }
  return 0;
}
