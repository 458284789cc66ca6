#include "shapes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hf::bench {
namespace {

using bpf::Code;
using bpf::Instruction;
using device::Rule;
using device::RuleSet;

Instruction make(unsigned code, unsigned dst, unsigned src, int off, int imm) {
  Instruction at{};
  at.code = std::uint8_t(code);
  at.dst_reg = std::uint8_t(dst) & 0xfU;
  at.src_reg = std::uint8_t(src) & 0xfU;
  at.off = std::int16_t(off);
  at.imm = imm;
  return at;
}

Code loads() {
  return {make(BPF_LDX | BPF_MEM | BPF_W, 2, 1, 0, 0), make(BPF_ALU | BPF_AND | BPF_K, 2, 0, 0, 0xffff),
          make(BPF_LDX | BPF_MEM | BPF_W, 3, 1, 0, 0), make(BPF_ALU | BPF_RSH | BPF_K, 3, 0, 0, 16),
          make(BPF_LDX | BPF_MEM | BPF_W, 4, 1, 4, 0), make(BPF_LDX | BPF_MEM | BPF_W, 5, 1, 8, 0)};
}

constexpr unsigned kNotNumber = BPF_JMP | BPF_JNE | BPF_K;

void add_access_test(Code& rule, const Rule& from) {
  if (from.access != device::Access::all) {
    rule.push_back(make(BPF_ALU | BPF_MOV | BPF_X, 1, 3, 0, 0));
    rule.push_back(make(BPF_ALU | BPF_AND | BPF_K, 1, 0, 0, int(from.access)));
    rule.push_back(make(BPF_JMP | BPF_JNE | BPF_X, 1, 3, 0, 0));
  }
}

void add_number_tests(Code& rule, const Rule& from) {
  if (from.selector.major) {
    rule.push_back(make(kNotNumber, 4, 0, 0, int(from.selector.major->first)));
  }
  if (from.selector.minor) {
    rule.push_back(make(kNotNumber, 5, 0, 0, int(from.selector.minor->first)));
  }
}

// Sets the distance of every conditional jump to the end of the rule.
void close(Code& rule) {
  for (std::size_t i = 0; i < rule.size(); ++i) {
    if (bpf::is_jump_class(rule[i]) && !bpf::is_exit(rule[i]) && !bpf::is_always_jump(rule[i])) {
      rule[i].off = std::int16_t(rule.size() - i - 1);
    }
  }
}

Code rule_by_rule(const RuleSet& rules, unsigned move) {
  Code code = loads();
  for (const Rule& from : rules) {
    Code rule = {make(kNotNumber, 2, 0, 0, int(*from.selector.kind))};
    add_access_test(rule, from);
    add_number_tests(rule, from);
    rule.push_back(make(move, 0, 0, 0, 1));
    rule.push_back(make(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
    close(rule);
    code.insert(code.end(), rule.begin(), rule.end());
  }
  code.push_back(make(move, 0, 0, 0, 0));
  code.push_back(make(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  return code;
}

}  // namespace

Code like_runc(const RuleSet& rules) { return rule_by_rule(rules, BPF_ALU | BPF_MOV | BPF_K); }

Code like_crun(const RuleSet& rules) {
  RuleSet reversed = rules;
  std::ranges::reverse(reversed);
  return rule_by_rule(reversed, BPF_ALU64 | BPF_MOV | BPF_K);
}

Code like_systemd(const RuleSet& rules) {
  Code code = loads();
  std::vector<std::size_t> passes;
  for (const Rule& from : rules) {
    Code rule;
    add_access_test(rule, from);
    rule.push_back(make(kNotNumber, 2, 0, 0, int(*from.selector.kind)));
    add_number_tests(rule, from);
    rule.push_back(make(BPF_JMP | BPF_JA, 0, 0, 0, 0));
    close(rule);
    code.insert(code.end(), rule.begin(), rule.end());
    passes.push_back(code.size() - 1);
  }
  for (const std::size_t pass : passes) {
    code[pass].off = std::int16_t(code.size() + 2 - pass - 1);
  }
  code.push_back(make(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0));
  code.push_back(make(BPF_JMP | BPF_JA, 0, 0, 1, 0));
  code.push_back(make(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1));
  code.push_back(make(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  return code;
}

}  // namespace hf::bench
