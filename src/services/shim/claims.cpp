#include "services/shim/claims.h"

#include <algorithm>

#include "adapters/nvidia/resolve.h"
#include "core/base/text.h"
#include "kernel/files/device_node.h"
#include "services/shim/refusal.h"

namespace hf::shim {
namespace {

using container::Claim;
using container::ContainerEdits;
using container::NodeEdit;

std::vector<std::string> unknown_gpus(const Facts& facts) {
  return nvidia::resolve(facts.request.nvidia, facts.inventory).unknown;
}

std::string names_of_gpus(const device::Inventory& inventory) {
  std::vector<std::string> names;
  for (const device::Unit& unit : inventory.units) {
    if (unit.device_class == "nvidia" && !unit.nodes.empty() && !unit.is_excluded) {
      const std::string index = "index " + std::to_string(names.size());
      names.push_back(unit.uuid.empty() ? index : index + " (" + unit.uuid + ")");
    }
  }
  return names.empty() ? "none" : join(names, ", ");
}

// "nvidia.com/gpu=0", "management.nvidia.com/gpu=all"
bool is_nvidias(std::string_view name) {
  const std::string_view vendor = name.substr(0, name.find('/'));
  return vendor == "nvidia.com" || vendor.ends_with(".nvidia.com");
}

void add_claim(Claims& claims, const kernel::Host& host, const std::string& name, const ContainerEdits& edits) {
  Claim claim;
  claim.source = container::Source::cdi;
  claim.where = name;
  for (const NodeEdit& node : edits.nodes) {
    const std::optional<kernel::NodeOnHost> live = kernel::read_node(host, node.on_host());
    const std::optional<device::Device> numbers = live ? std::optional(live->device) : node.device;
    claim.nodes.push_back({node.path, numbers, node.access});
    claims.named_paths.insert(node.path);
  }
  claims.claims.push_back(std::move(claim));
}

// Only NVIDIA's library knows MIG devices by their UUID, and the CDI spec that was generated with it.
Result<void> add_unknown_gpus(Claims& claims, const kernel::Host& host, const Facts& facts) {
  for (const std::string& gpu : unknown_gpus(facts)) {
    if (facts.pod && !facts.is_gpu_allocated(gpu)) {
      claims.notes.push_back("not given: GPU " + quote(gpu) +
                             ": kubelet allocated no GPU of this name to this container of "
                             "the pod; GPUs here: " +
                             names_of_gpus(facts.inventory));
      continue;
    }
    const std::optional<ContainerEdits> edits = facts.sources.cdi.edits_of("nvidia.com/gpu=" + gpu);
    if (!edits) {
      return refuse(facts.request.nvidia_description + ", but no GPU here is called " + quote(gpu) +
                    "; GPUs here: " + names_of_gpus(facts.inventory) + " ('holdfast devices' lists them)");
    }
    add_claim(claims, host, "nvidia.com/gpu=" + gpu, *edits);
  }
  return {};
}

// engine_gave_nodes: the engine knows specs in other directories, and has applied them.
Result<void> add_cdi_name(Claims& claims, const kernel::Host& host, const Facts& facts, const std::string& name,
                          bool engine_gave_nodes) {
  const std::optional<ContainerEdits> edits = facts.sources.cdi.edits_of(name);
  if (facts.request.is_by_environment && !facts.pod && !is_nvidias(name)) {
    return refuse("NVIDIA_VISIBLE_DEVICES names the CDI device " + quote(name) +
                  ", which is not NVIDIA's: an image could have set that; use the engine's --device");
  }
  if (facts.pod && !facts.is_cdi_name_allocated(name)) {
    claims.notes.push_back("not given: CDI device " + quote(name) +
                           ": kubelet allocated no device of this name to this container of the pod");
    return {};
  }
  if (!edits && !(facts.pod && engine_gave_nodes)) {
    return refuse("CDI device " + quote(name) +
                  " is in no spec below /etc/cdi or /var/run/cdi, or in two that contradict " +
                  "each other: see 'holdfast cdi list'");
  }
  if (edits) {
    add_claim(claims, host, name, *edits);
    ContainerEdits rest = *edits;
    rest.nodes.clear();
    append(claims.edits, rest);
  }
  return {};
}

}  // namespace

bool needs_cdi_specs(const Facts& facts) {
  const host::Sources& sources = facts.sources;
  const bool by_kubelet = sources.checkpoint &&
                          std::ranges::any_of(sources.checkpoint->allocations,
                                              [](const kube::Allocation& entry) { return !entry.cdi_devices.empty(); });
  return !facts.request.cdi_names.empty() || by_kubelet || !sources.prepared.empty() || !unknown_gpus(facts).empty();
}

Result<Claims> collect_claims(const kernel::Host& host, const DeliveryInput& input, const Facts& facts) {
  if (facts.trusts_nvidia() && !facts.has_gpu()) {
    return refuse(facts.request.nvidia_description +
                  ", but this host has no NVIDIA GPU that its driver knows: load it with "
                  "'modprobe nvidia', or see 'holdfast doctor'");
  }
  Claims claims;
  claims.claims = host::claims_of(
      host, host::NewContainer{input.spec, input.bundle + "/config.json", facts.pod, facts.request.nvidia},
      facts.sources, facts.inventory);
  TRY(add_unknown_gpus(claims, host, facts));
  for (const std::string& name : facts.request.cdi_names) {
    TRY(add_cdi_name(claims, host, facts, name, !input.spec.nodes.empty()));
  }
  return claims;
}

}  // namespace hf::shim
