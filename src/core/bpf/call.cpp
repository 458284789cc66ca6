#include "core/bpf/call.h"

#include <algorithm>

namespace hf::bpf {
namespace {

using Kind = CallEffect::Kind;

constexpr std::int32_t kTailCall = 12;
constexpr std::int32_t kGetRetval = 186;
constexpr std::int32_t kSetRetval = 187;
// Helper ids end near 212 and are no longer added to; distances in read-back code are far larger.
constexpr std::int32_t kLastHelper = 1023;

CallEffect effect_of_name(const std::string& name) {
  if (name == "bpf_set_retval") {
    return {Kind::sets_error, {}};
  }
  if (name == "bpf_get_retval") {
    return {Kind::reads_error, {}};
  }
  return name == "bpf_tail_call" ? CallEffect{Kind::unclear, "calls bpf_tail_call"} : CallEffect{};
}

}  // namespace

CallEffect effect_of(const Instruction& call, FirstArgument argument, const CallNames& names) {
  if (call.src_reg == BPF_PSEUDO_KFUNC_CALL) {
    return {Kind::unclear, "calls a kernel function that is not a helper"};
  }
  switch (call.imm) {
    case kTailCall: return {Kind::unclear, "goes on in another program (bpf_tail_call)"};
    case kGetRetval: return {Kind::reads_error, {}};
    case kSetRetval: return {Kind::sets_error, {}};
    default: break;
  }
  if (call.imm > 0 && call.imm <= kLastHelper) {
    return {};
  }
  if (const auto name = names.find(call.imm); name != names.end()) {
    return effect_of_name(name->second);
  }
  if (argument == FirstArgument::number) {
    return {Kind::unclear, "calls a helper whose name is not known, which could be bpf_set_retval"};
  }
  return {};
}

bool may_override(const Code& code, const CallNames& names) {
  return std::ranges::any_of(code, [&names](const Instruction& at) {
    if (!is_call(at) || is_own_call(at)) {
      return false;
    }
    const Kind kind = effect_of(at, FirstArgument::number, names).kind;
    return kind == Kind::sets_error || kind == Kind::unclear;
  });
}

}  // namespace hf::bpf
