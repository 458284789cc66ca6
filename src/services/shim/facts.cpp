#include "services/shim/facts.h"

#include <algorithm>

#include "adapters/kube/pod_names.h"
#include "core/container/cgroup_name.h"
#include "host/inventory.h"

namespace hf::shim {
namespace {

using config::Trust;

bool has_nodes_of_a_class(const oci::Spec& spec, const device::DeviceClasses& classes) {
  return std::ranges::any_of(
      spec.nodes, [&](const oci::SpecNode& node) { return device::role_of(classes, node.path).has_value(); });
}

bool has_nodes_of_others_than_nvidia(const oci::Spec& spec, const device::DeviceClasses& classes) {
  return std::ranges::any_of(spec.nodes, [&](const oci::SpecNode& node) {
    const std::optional<device::NodeRole> role = device::role_of(classes, node.path);
    return role && role->device_class->name != "nvidia";
  });
}

container::Pod pod_of(const oci::Spec& spec, Starter starter) {
  const std::string cgroup = container::cgroup_named_by(spec.cgroups_path);
  const std::optional<container::ParsedCgroupName> name = container::parse_cgroup_name(cgroup);
  // podman has conmon too, but names its cgroups otherwise.
  const bool is_crio = starter == Starter::conmon && name && name->engine == "cri-o";
  const char* engine = starter == Starter::kubelets_shim ? "containerd" : is_crio ? "cri-o" : "";
  container::Pod pod = kube::pod_named_in(spec.annotations, engine);
  pod.uid = name ? name->pod_uid : "";
  return pod;
}

std::vector<const kube::Allocation*> allocations_of(const Facts& facts) {
  return facts.pod ? host::allocations_to(facts.sources, *facts.pod) : std::vector<const kube::Allocation*>();
}

}  // namespace

bool Facts::has_gpu() const {
  return std::ranges::any_of(inventory.units, [](const device::Unit& unit) { return unit.device_class == "nvidia"; });
}

bool Facts::is_any_gpu_allocated() const {
  return std::ranges::any_of(allocations_of(*this), [](const kube::Allocation* allocation) {
    return allocation->resource.starts_with("nvidia.com/") && !allocation->ids.empty();
  });
}

bool Facts::is_gpu_allocated(const std::string& id) const {
  // Replicas of a GPU have the suffix "::NUMBER".
  const auto is_it = [&id](const std::string& given) { return given.substr(0, given.find("::")) == id; };
  return std::ranges::any_of(allocations_of(*this), [&](const kube::Allocation* allocation) {
    return allocation->resource.starts_with("nvidia.com/") && std::ranges::any_of(allocation->ids, is_it);
  });
}

bool Facts::is_cdi_name_allocated(const std::string& name) const {
  const auto has_name = [&name](const auto* given) {
    return std::ranges::find(given->cdi_devices, name) != given->cdi_devices.end();
  };
  return pod && (std::ranges::any_of(host::allocations_to(sources, *pod), has_name) ||
                 std::ranges::any_of(host::claims_prepared_for(sources, *pod), has_name));
}

std::optional<Facts> read_facts(const kernel::Host& host, const config::Config& config, const DeliveryInput& input) {
  Facts facts;
  facts.request = request_of(input.spec, config.runtime, input.starter);
  if (!facts.request.asks_nvidia() && facts.request.cdi_names.empty() &&
      !has_nodes_of_a_class(input.spec, config.classes)) {
    return facts.request.ignored.empty() ? std::nullopt : std::optional(std::move(facts));
  }
  // Only the cgroup says whether the container is in a pod, because that decides which requests are trusted.
  if (is_of_pod(input.spec, input.starter)) {
    facts.sources.kubelet = config.kube.root_dir;
    host::read_allocations(host, facts.sources);
    const container::Pod pod = pod_of(input.spec, input.starter);
    if (config.runtime.environment != Trust::always && find_trust(config.trust, pod) == nullptr) {
      facts.pod = pod;
    }
  }
  read_inventory(host, config, input.spec, facts);
  return facts;
}

void read_inventory(const kernel::Host& host, const config::Config& config, const oci::Spec& spec, Facts& facts) {
  config::Config wanted = config;
  // An inventory of every device of the host takes longer than everything else here, and is rarely needed.
  if (facts.request.cdi_names.empty() && !facts.pod && !has_nodes_of_others_than_nvidia(spec, config.classes)) {
    std::erase_if(wanted.classes, [](const device::DeviceClass& entry) { return entry.name != "nvidia"; });
  }
  facts.inventory = host::take_inventory(host, wanted, nvidia::Gpus::of_driver);
}

}  // namespace hf::shim
