// Labels that ask for CPUs, which any user who starts a container may write: a request within the limits, or a refusal.
#include <map>
#include <string>

#include "check.h"
#include "core/cpu/assign.h"
#include "core/cpu/machine.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t first = text.find('\n');
  const std::size_t second = first == std::string::npos ? first : text.find('\n', first + 1);
  std::map<std::string, std::string> labels = {{"holdfast.cpus", text.substr(0, first)}};
  if (first != std::string::npos) {
    labels["holdfast.cpus.near"] = text.substr(first + 1, second == std::string::npos ? second : second - first - 1);
  }
  if (second != std::string::npos) {
    labels["holdfast.cpus.options"] = text.substr(second + 1);
  }
  const hf::Result<std::optional<hf::cpu::CpuRequest>> request = hf::cpu::request_in(labels);
  if (!request) {
    check(!request.error().message.empty(), "a refusal says why");
    return 0;
  }
  check(request->has_value() && (*request)->count > 0, "at least one CPU");
  static const hf::cpu::Layout layout(*hf::cpu::find_machine("workstation"));
  static const hf::cpu::Policy policy = *make_policy(layout, {}, *hf::cpu::parse_cpu_set("0"), std::nullopt);
  hf::cpu::Tenant tenant{.owner = {"a", "b"}, .id = "a", .request = *request};
  const hf::cpu::Assigned assigned = assign(policy, adapt(policy, {}), {tenant}, hf::cpu::Others::removed);
  check(assigned.state.shared.contains(policy.reserved), "reserved CPUs stay shared");
  check(!given_cpus(assigned.state).overlaps(assigned.state.shared), "a CPU has one owner");
  check(assigned.refusals.empty() == (given_cpus(assigned.state).count() == (*request)->count), "all or nothing");
  return 0;
}
