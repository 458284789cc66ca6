#include "services/cpus/status.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace hf::cpus {
namespace {

std::optional<std::uint32_t> farthest(const cpu::Topology& topology, const std::vector<cpu::NumaId>& devices,
                                      const std::vector<cpu::NumaId>& nodes) {
  std::optional<std::uint32_t> most;
  for (const cpu::NumaId node : devices.empty() ? std::vector<cpu::NumaId>() : nodes) {
    std::uint32_t nearest = ~0U;
    for (const cpu::NumaId device : devices) {
      nearest = std::min(nearest, distance(topology, device, node));
    }
    most = std::max(most.value_or(0), nearest);
  }
  return most;
}

std::string problem_of(const report::CpuContainer& one, const cpu::ManagedContainer& managed, bool has_entry) {
  if (managed.present && one.present != one.cpus) {
    return "its cpuset is " + to_string(one.present);
  }
  if (one.requested > 0 && !one.is_exclusive) {
    return has_entry ? "its CPUs were released by hand" : "it has no CPUs of its own yet";
  }
  return "";
}

}  // namespace

report::CpuStatus status_of(const cpu::Policy& policy, const cpu::State& state, const StatusFacts& facts) {
  report::CpuStatus status;
  status.pool = state.shared;
  status.reserved = policy.reserved;
  status.topology = policy.layout->topology;
  status.state = state;
  const cpu::State wanted = in_force(state);
  for (std::size_t i = 0; i < facts.tenants.size(); ++i) {
    const host::CpuTenant& tenant = facts.tenants[i];
    const cpu::ManagedContainer& managed = facts.managed[i];
    report::CpuContainer one;
    one.title = title_of(tenant.container);
    one.name_space = name_space_of(tenant.container);
    one.id = tenant.container.id.value;
    one.engine = tenant.container.engine.value_or("");
    one.is_exclusive = owns_cpus(state, tenant.tenant.owner);
    one.requested = tenant.tenant.request ? tenant.tenant.request->count : 0;
    one.cpus = target_of(wanted, managed);
    one.present = managed.present.value_or(cpu::CpuSet());
    one.nodes = numa_nodes_of(status.topology, one.cpus);
    one.device_nodes = tenant.tenant.device_nodes;
    one.distance = farthest(status.topology, one.device_nodes, one.nodes);
    const auto problem = facts.problems.find(tenant.tenant.id);
    const bool is_known = problem != facts.problems.end() && !problem->second.empty();
    const bool has_entry = find_entry(state, tenant.tenant.owner) != nullptr;
    one.problem = is_known ? problem->second : problem_of(one, managed, has_entry);
    status.containers.push_back(std::move(one));
  }
  std::ranges::sort(status.containers, {},
                    [](const report::CpuContainer& one) { return std::tuple(!one.is_exclusive, one.title, one.id); });
  return status;
}

}  // namespace hf::cpus
