// Kubelet's cpu_manager_state: parsed or refused with a message; a state that is written is parsed again unchanged.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/kube/cpu_checkpoint.h"
#include "check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hf;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const cpu::PodBudgets budgets : {cpu::PodBudgets::ignored, cpu::PodBudgets::honoured}) {
    const auto checkpoint = kube::parse_cpu_checkpoint(text, {.policy = "", .budgets = budgets});
    if (!checkpoint) {
      check(!checkpoint.error().what.empty() && !checkpoint.error().kubelet_says.empty(), "a fault has a message");
      continue;
    }
    cpu::State state = checkpoint->state;
    state.pods.clear();  // the second format has none
    const std::string written = kube::render_cpu_checkpoint(checkpoint->policy, state);
    const auto again = kube::parse_cpu_checkpoint(written, {.policy = checkpoint->policy});
    check(again.has_value(), "what we write is read");
    check(again->state == state && again->policy == checkpoint->policy, "a round trip changes nothing");
    check(again->is_checked, "what we write has a checksum");
  }
  return 0;
}
