// Kubelet's cpu_manager_state: read or refused with words; what was read is written and read again the same.
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
      check(!checkpoint.error().what.empty() && !checkpoint.error().kubelet_says.empty(), "a fault has words");
      continue;
    }
    cpu::State state = checkpoint->state;
    state.pods.clear();  // the second format has none
    const std::string written = kube::render_cpu_checkpoint(checkpoint->policy, state);
    const auto again = kube::parse_cpu_checkpoint(written, {.policy = checkpoint->policy});
    check(again.has_value(), "what we write is read");
    check(again->state == state && again->policy == checkpoint->policy, "there and back");
    check(again->is_checked, "what we write has a checksum");
  }
  return 0;
}
