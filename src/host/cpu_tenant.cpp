#include "host/cpu_tenant.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "host/inventory.h"

namespace hf::host {
namespace {

// Kubelet puts the pods of the other QoS classes below cgroups with these names.
bool is_guaranteed(const container::Container& container) {
  return container.cgroup.find("besteffort") == std::string::npos &&
         container.cgroup.find("burstable") == std::string::npos;
}

bool is_in_pod(const container::Container& container) { return container.pod && !container.pod->uid.empty(); }

// A container without a name is known by its id.
cpu::Owner owner_of(const container::Container& container) {
  if (container.is_owned_by_user) {
    return {container.cgroup, container.id.value};  // a user may give it any id, and that of any pod
  }
  if (is_in_pod(container)) {
    return {container.pod->uid,
            container.is_sandbox || container.pod->container.empty() ? container.id.value : container.pod->container};
  }
  return {container.id.value, container.name.value_or(container.id.value)};
}

void read_request(const DiscoveredContainer& discovered, CpuTenant& tenant) {
  const container::Container& container = discovered.container;
  if (is_in_pod(container)) {
    if (is_guaranteed(container) && !container.is_sandbox && discovered.spec) {
      tenant.tenant.request = cpu::request_of_pod(discovered.spec->cpu.time);
    }
    return;
  }
  if (container.is_owned_by_user || !discovered.spec) {
    return;
  }
  const Result<std::optional<cpu::CpuRequest>> request = cpu::request_in(container.labels);
  if (request) {
    tenant.tenant.request = *request;
  } else {
    tenant.problem = request.error().message;
  }
}

}  // namespace

std::optional<CpuTenant> cpu_tenant_of(const DiscoveredContainer& discovered) {
  const container::Container& container = discovered.container;
  if (container.inside || container.shares_cgroup) {
    return std::nullopt;
  }
  CpuTenant tenant;
  tenant.tenant.owner = owner_of(container);
  tenant.tenant.id = container.cgroup;
  tenant.container = container;
  std::erase_if(tenant.container.v1, [](const auto& entry) { return entry.first != "cpuset" && entry.first != "cpu"; });
  tenant.container.labels.clear();
  if (discovered.spec) {
    tenant.time = discovered.spec->cpu.time;
    const Result<cpu::CpuSet> confined = cpu::parse_cpu_set(discovered.spec->cpu.cpus);
    const bool is_own = !is_in_pod(container);  // kubelet sets none: what a pod has is ours, given at its creation
    if (is_own && confined && !confined->empty()) {
      tenant.confined = *confined;
    }
  }
  read_request(discovered, tenant);
  return tenant;
}

std::vector<CpuTenant> cpu_tenants_of(const std::vector<DiscoveredContainer>& discovered) {
  std::vector<CpuTenant> tenants;
  for (const DiscoveredContainer& one : discovered) {
    if (std::optional<CpuTenant> tenant = cpu_tenant_of(one)) {
      tenants.push_back(*std::move(tenant));
    }
  }
  std::ranges::sort(
      tenants, {}, [](const CpuTenant& tenant) { return std::pair(tenant.container.started_ticks, tenant.tenant.id); });
  return tenants;
}

void locate_devices(const kernel::Host& host, const config::Config& config, const DiscoveredContainer& discovered,
                    CpuTenant& tenant) {
  if (!tenant.tenant.request || !tenant.tenant.request->is_near_devices) {
    return;
  }
  const device::Inventory inventory = take_inventory(host, config, Libraries::leave);
  const container::Entitlement owed = entitlement_of(host, discovered, read_sources(host), inventory, config);
  const std::vector<std::string>& near = tenant.tenant.request->near;
  for (const device::Unit& unit : inventory.units) {
    const bool is_owned = std::ranges::any_of(unit.nodes, [&](const std::string& path) {
      return owed.find(path) != nullptr && (near.empty() || std::ranges::find(near, path) != near.end());
    });
    if (is_owned && unit.numa && *unit.numa >= 0) {
      tenant.tenant.device_nodes.push_back(cpu::NumaId{std::uint32_t(*unit.numa)});
    }
  }
}

}  // namespace hf::host
