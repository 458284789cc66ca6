#include "core/container/entitlement/entitlement.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/text.h"
#include "core/device/table.h"

namespace hf::container {
namespace {

using device::Access;
using device::Device;
using device::DeviceClasses;
using device::Inventory;
using device::NodeRole;
using device::Part;

bool is_allocation(Source source) {
  return source == Source::ledger || source == Source::kubelet || source == Source::dra;
}

bool is_request(Source source) { return source == Source::nvidia_hook || source == Source::cdi; }

std::string vendor_of(const Inventory& inventory, const std::string& path) {
  const device::Unit* unit = inventory.unit_with(path);
  if (unit == nullptr) {
    return {};
  }
  return unit->device_class == "nvidia" ? "0x10de" : unit->device_class == "amd" ? "0x1002" : "";
}

// A container may have a device under another name than the host, so the minor is the claimed one; the major is the
// current one of the driver that device nodes of this name belong to.
std::optional<Device> current_numbers(const WantedNode& node, const std::optional<NodeRole>& role,
                                      const Inventory& inventory) {
  const device::Node* on_host = inventory.find(node.path);
  if (!node.claimed) {
    return on_host != nullptr ? on_host->numbers()
           : role             ? numbers_of(*role->pattern, node.path, inventory.drivers)
                              : std::nullopt;
  }
  if (!role || !role->pattern->numbering) {
    const bool knows_driver = on_host != nullptr && on_host->expected;
    const bool moved = knows_driver && on_host->expected->major != node.claimed->major;
    return moved ? on_host->expected : node.claimed;
  }
  const std::optional<Device> named = numbers_of(*role->pattern, node.path, inventory.drivers);
  if (!named) {
    return std::nullopt;  // its driver is not loaded
  }
  return Device{node.claimed->kind, named->major, node.claimed->minor};
}

class Collector {
 public:
  Collector(const Inventory& inventory, const DeviceClasses& classes) : inventory_(inventory), classes_(classes) {}

  void add(const Claim& claim) {
    const std::string because = to_string(claim.source) + " " + claim.where;
    for (const WantedNode& node : claim.nodes) {
      OwedNode& owed = place(node.path, node);
      owed.claimed = owed.claimed ? owed.claimed : node.claimed;
      owed.access = owed.access | node.access;
      owed.permissions = node.permissions.value_or(owed.permissions);
      owed.is_rule_only = false;
      owed.because.push_back(because);
      owed.sources.insert(claim.source);
    }
    for (const std::string& path : claim.not_wanted) {
      not_wanted_.insert(path);
    }
    const device::Table allowed = device::Table::of_rules(claim.rules);
    for (const device::Node& node : inventory_.nodes) {
      const std::optional<Device> device = node.numbers();
      const Access access = device ? allowed.access_to(*device) : Access::none;
      if (access == Access::none || nodes_.contains(node.path)) {
        continue;
      }
      OwedNode& owed = place(node.path, {node.path, device, access});
      owed.access = access;
      owed.is_rule_only = true;
      owed.because.push_back(because);
      owed.sources.insert(claim.source);
    }
  }

  // Adds the control and helper nodes that every unit of a class needs.
  void complete() {
    std::map<std::string, std::string> classes_owed;  // by name: a unit that needs the other nodes
    for (const auto& [path, owed] : nodes_) {
      if (owed.part == Part::unit && !owed.device_class.empty() && !owed.is_rule_only) {
        classes_owed.emplace(owed.device_class, path);
      }
    }
    for (const auto& [name, unit] : classes_owed) {
      const device::DeviceClass* entry = find_class(classes_, name);
      for (const device::NodePattern& pattern : entry->nodes) {
        const bool in_set = pattern.is_implied && (pattern.part == Part::control || pattern.part == Part::helper);
        const bool is_literal = pattern.glob.find_first_of("*?[") == std::string::npos;
        const auto known = nodes_.find(pattern.glob);
        const bool is_there = known != nodes_.end() && !known->second.is_rule_only;
        if (!in_set || !is_literal || is_there || not_wanted_.contains(pattern.glob)) {
          continue;
        }
        OwedNode& owed = place(pattern.glob, {pattern.glob, std::nullopt, Access::none});
        owed.access = Access::read | Access::write;
        owed.is_completion = true;
        owed.is_rule_only = false;
        owed.because.push_back("goes with " + unit);
      }
    }
  }

  std::vector<OwedNode> take() {
    std::vector<OwedNode> nodes;
    nodes.reserve(nodes_.size());
    for (auto& [path, owed] : nodes_) {
      nodes.push_back(std::move(owed));
    }
    return nodes;
  }

 private:
  OwedNode& place(const std::string& path, const WantedNode& node) {
    const auto [entry, is_new] = nodes_.try_emplace(path);
    OwedNode& owed = entry->second;
    if (is_new) {
      const std::optional<NodeRole> role = role_of(classes_, path, vendor_of(inventory_, path));
      owed.path = path;
      owed.device_class = role ? role->device_class->name : "";
      owed.part = role ? role->pattern->part : Part::unit;
      owed.device = current_numbers(node, role, inventory_);
    }
    return owed;
  }

  const Inventory& inventory_;
  const DeviceClasses& classes_;
  std::map<std::string, OwedNode> nodes_;
  std::set<std::string> not_wanted_;
};

}  // namespace

std::string to_string(Source source) {
  switch (source) {
    case Source::ledger: return "ledger";
    case Source::kubelet: return "kubelet";
    case Source::dra: return "dra";
    case Source::oci: return "oci";
    case Source::cdi: return "cdi";
    case Source::nvidia_hook: return "nvidia-hook";
    case Source::environment: return "environment";
  }
  return "";
}

std::vector<std::string> paths_of(const Claim& claim) {
  std::vector<std::string> paths;
  paths.reserve(claim.nodes.size());
  for (const WantedNode& node : claim.nodes) {
    paths.push_back(node.path);
  }
  return paths;
}

std::vector<Claim> weigh(std::vector<Claim> claims, const Standing& standing) {
  std::set<std::string> allocated;
  std::set<std::string> prepared;  // for the pod; supports CDI names only, which kubelet writes
  for (const Claim& claim : claims) {
    for (const WantedNode& node : claim.nodes) {
      if (is_allocation(claim.source) && claim.refused.empty()) {
        (claim.is_about_pod ? prepared : allocated).insert(node.path);
      }
    }
  }
  std::vector<Claim> weighed;
  for (Claim& claim : claims) {
    if (claim.refused.empty() && !standing.inside.empty()) {
      claim.refused = "written by processes of container " + standing.inside + ", which it runs in";
    } else if (claim.refused.empty() && standing.in_pod && !standing.vouched_by.empty() &&
               (is_request(claim.source) || claim.source == Source::environment)) {
      claim.where += ", which " + standing.vouched_by + " vouches for";
      weighed.push_back(std::move(claim));
      continue;
    } else if (claim.refused.empty() && claim.source == Source::environment) {
      std::erase_if(claim.nodes, [&](const WantedNode& node) { return allocated.contains(node.path); });
      claim.refused = "an environment variable may come from the image, and no hook of the runtime acts on it";
    } else if (claim.refused.empty() && claim.source == Source::cdi && !standing.in_pod) {
      claim.refused = "an annotation may come from the image, and the bundle has no such nodes";
    }
    if (!claim.refused.empty() || !standing.in_pod || !is_request(claim.source)) {
      weighed.push_back(std::move(claim));
      continue;
    }
    // Of a request in a pod, only what kubelet allocated counts: an image can request anything.
    Claim rest = claim;
    const auto is_vouched = [&](const WantedNode& node) {
      return allocated.contains(node.path) || (claim.source == Source::cdi && prepared.contains(node.path));
    };
    std::erase_if(rest.nodes, is_vouched);
    std::erase_if(claim.nodes, [&](const WantedNode& node) { return !is_vouched(node); });
    if (!rest.nodes.empty()) {
      rest.refused = standing.allocations_known
                         ? "kubelet allocated no such device to this container of the pod"
                         : "kubelet's record of allocations cannot be read, and in a pod nothing "
                           "else vouches for it";
      weighed.push_back(std::move(rest));
    }
    if (!claim.nodes.empty() || !claim.not_wanted.empty()) {
      weighed.push_back(std::move(claim));
    }
  }
  return weighed;
}

device::Request request_for(const OwedNode& node) {
  constexpr Access kReadWrite = Access::read | Access::write;
  const Access bits = node.access & kReadWrite;
  return {node.device.value_or(Device{}), bits == Access::none ? kReadWrite : bits};
}

const OwedNode* Entitlement::find(const std::string& path) const {
  const auto found = std::ranges::find(nodes, path, &OwedNode::path);
  return found == nodes.end() ? nullptr : &*found;
}

Entitlement entitle(const std::vector<Claim>& claims, const Inventory& inventory, const DeviceClasses& classes) {
  Entitlement entitlement;
  Collector collector(inventory, classes);
  for (const Claim& claim : claims) {
    if (claim.refused.empty() && !claim.is_about_pod) {
      collector.add(claim);
    } else if (!claim.refused.empty() && (!claim.nodes.empty() || !claim.rules.empty())) {
      entitlement.refused.push_back(claim);
    }
  }
  collector.complete();
  entitlement.nodes = collector.take();
  return entitlement;
}

std::string summary_of(const Entitlement& entitlement) {
  std::map<std::string, std::vector<std::string>> by_class;
  for (const OwedNode& node : entitlement.nodes) {
    if (node.part != Part::unit) {
      continue;
    }
    const std::string name = node.device_class.empty() ? "other" : node.device_class;
    const std::string last(base_name(node.path));
    const std::size_t digits = last.find_last_not_of("0123456789");
    const bool is_numbered = digits != std::string::npos && digits + 1 < last.size();
    by_class[name].push_back(is_numbered && name != "other" ? last.substr(digits + 1) : last);
  }
  std::vector<std::string> parts;
  for (const auto& [name, units] : by_class) {
    const bool is_class_name = units.size() == 1 && units.front() == name;
    parts.push_back(is_class_name ? name : name + ":" + join(units, ","));
  }
  return join(parts, " ");
}

}  // namespace hf::container
