#include "services/shim/delivery.h"

#include <algorithm>
#include <iterator>

#include "adapters/cdi/cdi.h"
#include "adapters/nvidia/request.h"
#include "adapters/nvidia/requirement.h"
#include "core/base/text.h"
#include "services/shim/claims.h"
#include "services/shim/driver_edits.h"
#include "services/shim/refusal.h"

namespace hf::shim {
namespace {

using container::Claim;
using container::ContainerEdits;
using container::Entitlement;
using container::NodeEdit;
using container::OwedNode;

void note_refused(Delivery& delivery, const Entitlement& owed) {
  for (const Claim& claim : owed.refused) {
    if (claim.source == container::Source::oci) {
      continue;  // the writer of the spec left a node without a rule on purpose
    }
    std::vector<std::string> paths = paths_of(claim);
    std::erase_if(paths, [&owed](const std::string& path) { return owed.find(path) != nullptr; });  // by another source
    if (!paths.empty()) {
      delivery.notes.push_back("not given: " + join(paths, ", ") + ": " + claim.refused);
    }
  }
}

std::string cure_for(const OwedNode& node) {
  const bool is_uvm = node.path.starts_with("/dev/nvidia-uvm");
  return is_uvm                          ? ": 'modprobe nvidia-uvm', then start the container again"
         : node.device_class == "nvidia" ? ": 'modprobe nvidia', then start the container again"
                                         : ": load the driver of " + node.device_class;
}

Result<void> check_missing(Delivery& delivery, const OwedNode& node, const Facts& facts) {
  if (node.part == device::Part::extra && node.sources.contains(container::Source::nvidia_hook)) {
    return refuse(node.path + " is asked for by a variable or a mount, and the driver of this host does not offer it");
  }
  if (node.part == device::Part::helper || node.part == device::Part::extra) {
    return {};
  }
  const std::string why = node.path + " is needed and its driver is not there" + cure_for(node);
  if (!node.is_completion || facts.trusts_nvidia()) {
    return refuse(why);
  }
  delivery.notes.push_back(why);  // the spec may name the other nodes and leave this one out on purpose
  return {};
}

// udev creates these links for most devices, but not for NVIDIA's, and runc 1.1.3 to 1.1.6 pass no device without one
// to systemd: the next reload would remove the access.
void plan_link(Delivery& delivery, const OwedNode& node) {
  constexpr std::string_view kDev = "/dev/";
  if (node.path.starts_with(kDev)) {
    const std::string directory = node.device->kind == device::Kind::block ? "/dev/block/" : "/dev/char/";
    const std::string link = directory + std::to_string(node.device->major) + ":" + std::to_string(node.device->minor);
    delivery.steps.push_back({CreateSymlink{link, "../" + node.path.substr(kDev.size())}, true});
  }
}

void plan_host(Delivery& delivery, const OwedNode& node, const device::Inventory& inventory) {
  const device::Node* known = inventory.find(node.path);
  if (known != nullptr && (!known->live || known->is_stale())) {
    delivery.steps.push_back({CreateNode{node.path, *node.device, node.permissions}});
  }
  plan_link(delivery, node);
}

NodeEdit edit_of(const OwedNode& node, const device::Inventory& inventory) {
  NodeEdit edit{.path = node.path, .device = node.device, .access = node.access};
  const device::Node* known = inventory.find(node.path);
  if (known != nullptr && known->live) {
    edit.mode = known->mode;
    edit.uid = known->uid;
    edit.gid = known->gid;
  }
  return edit;
}

void give(Delivery& delivery, const NodeEdit& node) { delivery.given.push_back({node.path, node.device, node.access}); }

void plan_node(Delivery& delivery, const OwedNode& node, const device::Inventory& inventory,
               const config::RuntimeSettings& settings) {
  if (settings.creates_nodes && !node.device_class.empty()) {
    plan_host(delivery, node, inventory);
  }
  delivery.change.edits.nodes.push_back(edit_of(node, inventory));
  give(delivery, delivery.change.edits.nodes.back());
}

bool has_gpu(const Entitlement& owed) {
  return std::ranges::any_of(owed.nodes, [](const OwedNode& node) { return node.device_class == "nvidia"; });
}

// A container that is owed a part of a GPU has the GPU's node, too, but not its other parts.
bool has_mig_part(const Entitlement& owed) {
  return std::ranges::any_of(owed.nodes,
                             [](const OwedNode& node) { return node.path.starts_with("/dev/nvidia-caps/"); });
}

bool has_every_gpu(const Entitlement& owed, const device::Inventory& inventory) {
  return !has_mig_part(owed) && std::ranges::all_of(inventory.units, [&owed](const device::Unit& unit) {
    return unit.device_class != "nvidia" || unit.is_excluded || unit.nodes.empty() ||
           owed.find(unit.nodes.front()) != nullptr;
  });
}

// Devices beside a GPU that no plugin allocates, so that in a pod nothing vouches for them.
void give_features(Delivery& delivery, const kernel::Host& host, const Facts& facts) {
  for (const std::string& feature : facts.request.features) {
    if (facts.pod) {
      delivery.notes.push_back("not given: " + feature + "=enabled: this container is in a pod, and no rule below " +
                               "'trust:' in the config vouches for it");
      continue;
    }
    const ContainerEdits edits = feature_edits(host, feature);
    if (edits.nodes.empty()) {
      delivery.notes.push_back(feature + "=enabled has no effect: this host has no such device");
    }
    append(delivery.change.edits, edits);
    std::ranges::for_each(edits.nodes, [&delivery](const NodeEdit& node) { give(delivery, node); });
  }
}

// NVIDIA's hooks, which this runtime replaces.
std::vector<std::string> replaced_hooks(const oci::Spec& spec) {
  std::vector<std::string> paths;
  for (const oci::Hook& hook : spec.hooks) {
    if (nvidia::is_nvidia_hook(hook.path)) {
      paths.push_back(hook.path);
    }
  }
  return paths;
}

}  // namespace

Result<Delivery> plan_delivery(const kernel::Host& host, const config::Config& config, const DeliveryInput& input,
                               Facts facts) {
  const bool heeds_variables = facts.trusts_nvidia() || (facts.request.is_by_environment && !facts.pod);
  if (heeds_variables && !facts.request.nvidia.mistakes.empty()) {
    return refuse(facts.request.nvidia.mistakes.front());
  }
  if (needs_cdi_specs(facts)) {
    facts.sources.cdi = cdi::read_registry(host);
  }
  Claims claims = TRY(collect_claims(host, input, facts));
  const Entitlement owed = entitle(claims.claims, facts.inventory, config.classes);
  Delivery delivery;
  delivery.change.edits = std::move(claims.edits);
  delivery.notes = std::move(claims.notes);
  std::ranges::copy(facts.request.ignored, std::back_inserter(delivery.notes));
  delivery.has_every_gpu = has_every_gpu(owed, facts.inventory);
  note_refused(delivery, owed);
  for (const OwedNode& node : owed.nodes) {
    const bool is_ours = !node.device_class.empty() || claims.named_paths.contains(node.path);
    if (!is_ours || node.is_rule_only) {
      continue;
    }
    if (node.device) {
      plan_node(delivery, node, facts.inventory, config.runtime);
    } else {
      TRY(check_missing(delivery, node, facts));
    }
  }
  if (has_gpu(owed) && facts.trusts_nvidia()) {
    DriverEdits driver = TRY(driver_edits(host, config.runtime, input, facts.request));
    append(delivery.change.edits, driver.edits);
    delivery.identities = std::move(driver.identities);
    if (!driver.to_cache.empty()) {
      delivery.steps.push_back({CacheDriver{std::move(driver.to_cache)}, true});
    }
    std::ranges::copy(nvidia::find_unreadable(input.spec.environment), std::back_inserter(delivery.notes));
    delivery.change.dropped_hooks = replaced_hooks(input.spec);
  }
  if (has_gpu(owed)) {
    give_features(delivery, host, facts);
  }
  return delivery;
}

}  // namespace hf::shim
