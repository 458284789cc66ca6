#include "core/bpf/call.h"

namespace hf::bpf {
namespace {

constexpr std::int32_t kTailCall = 12;
constexpr std::int32_t kSetRetval = 187;
// Helper ids end near 212 and are no longer added to; distances in read-back code are far larger.
constexpr std::int32_t kLastHelper = 1023;

}  // namespace

std::optional<std::string> can_change_verdict(const Instruction& call, FirstArgument argument, const CallNames& names) {
  if (call.src_reg == BPF_PSEUDO_KFUNC_CALL) {
    return "calls a kernel function that is not a helper";
  }
  if (call.imm == kTailCall) {
    return "goes on in another program (bpf_tail_call)";
  }
  if (call.imm == kSetRetval) {
    return "sets its own error (bpf_set_retval)";
  }
  if (call.imm > 0 && call.imm <= kLastHelper) {
    return std::nullopt;
  }
  if (const auto name = names.find(call.imm); name != names.end()) {
    const bool reaches_further = name->second == "bpf_set_retval" || name->second == "bpf_tail_call";
    return reaches_further ? std::optional("calls " + name->second) : std::nullopt;
  }
  if (argument == FirstArgument::number) {
    return "calls a helper whose name is not known, which could be bpf_set_retval";
  }
  return std::nullopt;
}

}  // namespace hf::bpf
