#include "host/nri_container.h"

#include <algorithm>

#include "core/container/cgroup_name.h"
#include "core/container/entitlement/entitlement.h"

namespace hf::host {
namespace {

bool has_device(const nri::Container& container, const std::string& path) {
  return std::ranges::find(container.devices, path, &nri::Device::path) != container.devices.end();
}

// Without kubelet's cgroup of that pod nothing tells its QoS class: a pod that was created through CRI by another
// client may have none (containerd gives its own namespace as parent).
bool is_guaranteed(const nri::Container& container) {
  return !container.pod_uid.empty() && container::pod_uid_in(container.cgroup_parent) == container.pod_uid &&
         container::is_guaranteed(container.cgroup_parent);
}

}  // namespace

cpu::Owner owner_of(const nri::Container& container) { return {container.pod_uid, container.name}; }

cpu::Tenant tenant_of(const nri::Container& container, const device::Inventory& inventory) {
  cpu::Tenant tenant;
  tenant.owner = owner_of(container);
  tenant.id = container.id;
  if (is_guaranteed(container)) {
    tenant.request = cpu::request_of_pod(container.time);
  }
  for (const device::Unit& unit : inventory.units) {
    const bool is_given =
        std::ranges::any_of(unit.nodes, [&](const std::string& path) { return has_device(container, path); });
    if (is_given && unit.numa && *unit.numa >= 0) {
      tenant.device_nodes.push_back(cpu::NumaId{std::uint32_t(*unit.numa)});
    }
  }
  return tenant;
}

std::vector<nri::Device> missing_nodes_of(const nri::Container& container, const device::Inventory& inventory,
                                          const device::DeviceClasses& classes) {
  container::Claim claim;
  claim.where = "NRI";
  for (const nri::Device& device : container.devices) {
    claim.nodes.push_back({.path = device.path, .claimed = device.device});
  }
  std::vector<nri::Device> missing;
  for (const container::OwedNode& node : container::entitle({claim}, inventory, classes).nodes) {
    const device::Node* const live = inventory.find(node.path);
    const bool is_usable = live != nullptr && live->live && !live->is_stale();
    if (node.is_completion && !node.is_rule_only && node.device && is_usable && !has_device(container, node.path)) {
      missing.push_back({node.path, *node.device, node.permissions.mode});
    }
  }
  return missing;
}

}  // namespace hf::host
