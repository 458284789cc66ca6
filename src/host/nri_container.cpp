#include "host/nri_container.h"

#include <algorithm>

#include "core/container/cgroup_name.h"
#include "core/container/entitlement/entitlement.h"
#include "host/cpu_tenant.h"
#include "host/inventory.h"

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

// The devices that the engine gives it.
container::Claim claim_of(const nri::Container& container) {
  container::Claim claim;
  claim.where = "NRI";
  for (const nri::Device& device : container.devices) {
    claim.nodes.push_back({.path = device.path, .claimed = device.device});
  }
  return claim;
}

}  // namespace

cpu::Owner owner_of(const nri::Container& container) { return {container.pod_uid, container.name}; }

cpu::Tenant tenant_of(const nri::Container& container) {
  cpu::Tenant tenant;
  tenant.owner = owner_of(container);
  tenant.id = container.id;
  if (is_guaranteed(container)) {
    tenant.request = cpu::request_of_pod(container.time);
  }
  return tenant;
}

HostDevices read_host_devices(const kernel::Host& host, const config::Config& config) {
  return {take_inventory(host, config, Libraries::leave), read_sources(host, config)};
}

std::vector<cpu::NumaId> nodes_near(const kernel::Host& host, const nri::Container& container,
                                    const cpu::CpuRequest& request, const HostDevices& devices,
                                    const device::DeviceClasses& classes) {
  const oci::Spec nothing_more;
  const nvidia::Request no_request;
  const container::Pod pod{.uid = container.pod_uid,
                           .name = container.pod_name,
                           .name_space = container.pod_name_space,
                           .container = container.name};
  std::vector<container::Claim> claims =
      claims_of(host, NewContainer{nothing_more, "NRI", pod, no_request}, devices.sources, devices.inventory);
  claims.push_back(claim_of(container));
  return nodes_near(request, container::entitle(claims, devices.inventory, classes), devices.inventory);
}

std::vector<nri::Device> missing_nodes_of(const nri::Container& container, const device::Inventory& inventory,
                                          const device::DeviceClasses& classes) {
  std::vector<nri::Device> missing;
  for (const container::OwedNode& node : container::entitle({claim_of(container)}, inventory, classes).nodes) {
    const device::Node* const live = inventory.find(node.path);
    const bool is_usable = live != nullptr && live->live && !live->is_stale();
    if (node.is_completion && !node.is_rule_only && node.device && is_usable && !has_device(container, node.path)) {
      missing.push_back({node.path, *node.device, node.permissions.mode});
    }
  }
  return missing;
}

}  // namespace hf::host
