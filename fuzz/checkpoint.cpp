// Kubelet's files: any content is parsed, or refused with a message.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/kube/checkpoint.h"
#include "check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hf;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<kube::Checkpoint> checkpoint = kube::parse_checkpoint(text);
  check(checkpoint || !checkpoint.error().message.empty(), "an error has a message");
  const Result<std::vector<kube::PreparedClaim>> claims = kube::parse_prepared_claims(text);
  check(claims || !claims.error().message.empty(), "an error has a message");
  const Result<kube::CpuState> state = kube::parse_cpu_state(text);
  check(state || !state.error().message.empty(), "an error has a message");
  if (state) {
    for (const auto& [name, cpus] : state->exclusive) {
      check(name.find('/') != std::string::npos, "a container has a pod");
    }
  }
  for (const std::string& name : kube::cdi_names_in({{"cdi.k8s.io/x", std::string(text)}})) {
    check(!name.empty() && name.find(',') == std::string::npos, "a name is one name");
  }
  return 0;
}
