#include "host/cpu_tenant.h"

#include <algorithm>
#include <utility>

#include "core/container/cgroup_name.h"
#include "host/inventory.h"

namespace hf::host {
namespace {

bool is_in_pod(const container::Container& container) { return container.pod && !container.pod->uid.empty(); }

// A pod whose uid is unknown is still a pod, and its annotations are its author's, who may contradict its names too.
bool is_of_cri(const container::Container& container) {
  const bool has_cri = container.engine == "containerd" || container.engine == "cri-o";
  return has_cri && (container.pod || container.name_space == "k8s.io");
}

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

std::optional<cpu::CpuSet> some_of(const std::string& text) {
  const Result<cpu::CpuSet> set = cpu::parse_cpu_set(text);
  return set && !set->empty() ? std::optional(*set) : std::nullopt;
}

void read_request(const DiscoveredContainer& discovered, CpuTenant& tenant) {
  const container::Container& container = discovered.container;
  if (is_in_pod(container)) {
    if (discovered.spec) {
      set_cpu_time(tenant, discovered.spec->cpu.time);
    }
    return;
  }
  if (container.is_owned_by_user || is_of_cri(container) || !discovered.spec) {
    return;
  }
  tenant.problem = container.ignored_request;
  const Result<std::optional<cpu::CpuRequest>> request = cpu::request_in(container.labels);
  if (request) {
    tenant.tenant.request = *request;
  } else {
    tenant.problem = request.error().message;
  }
}

}  // namespace

std::vector<cpu::NumaId> nodes_near(const cpu::CpuRequest& request, const container::Entitlement& owed,
                                    const device::Inventory& inventory) {
  std::vector<cpu::NumaId> nodes;
  for (const device::Unit& unit : inventory.units) {
    const bool is_wanted = std::ranges::any_of(unit.nodes, [&](const std::string& path) {
      return owed.find(path) != nullptr &&
             (request.near.empty() || std::ranges::find(request.near, path) != request.near.end());
    });
    if (is_wanted && unit.numa && *unit.numa >= 0) {
      nodes.push_back(cpu::NumaId{std::uint32_t(*unit.numa)});
    }
  }
  return nodes;
}

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
    tenant.has_cpuset = !discovered.spec->cpu.cpus.empty();
    if (!is_in_pod(container)) {  // kubelet sets none: what a pod has is ours, given at its creation
      tenant.tenant.confined = some_of(discovered.spec->cpu.cpus);
      tenant.memory_nodes = some_of(discovered.spec->cpu.mems);
    }
  }
  read_request(discovered, tenant);
  return tenant;
}

void set_cpu_time(CpuTenant& tenant, const cpu::CpuTime& time) {
  const container::Container& container = tenant.container;
  tenant.time = time;
  if (is_in_pod(container) && container::is_guaranteed(container.cgroup) && !container.is_sandbox) {
    tenant.tenant.request = cpu::request_of_pod(time);
  }
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

void locate_devices(const kernel::Host& host, const config::Config& config,
                    const std::vector<DiscoveredContainer>& discovered, std::vector<CpuTenant>& tenants) {
  const auto wants_devices = [](const CpuTenant& tenant) {
    return tenant.tenant.request && tenant.tenant.request->is_near_devices;
  };
  if (std::ranges::none_of(tenants, wants_devices)) {
    return;
  }
  const device::Inventory inventory = take_inventory(host, config, Libraries::leave);
  const Sources sources = read_sources(host, config);
  for (CpuTenant& tenant : tenants) {
    const auto found = std::ranges::find(discovered, tenant.container.cgroup,
                                         [](const DiscoveredContainer& one) { return one.container.cgroup; });
    if (wants_devices(tenant) && found != discovered.end()) {
      tenant.tenant.device_nodes =
          nodes_near(*tenant.tenant.request, entitlement_of(host, *found, sources, inventory, config), inventory);
    }
  }
}

}  // namespace hf::host
