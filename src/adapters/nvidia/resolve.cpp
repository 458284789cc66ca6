#include "adapters/nvidia/resolve.h"

#include <algorithm>
#include <cctype>

#include "core/base/text.h"

namespace hf::nvidia {
namespace {

using container::WantedNode;
using device::Inventory;
using device::Unit;

void want(std::vector<WantedNode>& nodes, const std::string& path) {
  if (std::ranges::find(nodes, path, &WantedNode::path) == nodes.end()) {
    nodes.push_back({path, std::nullopt, device::Access::read | device::Access::write});
  }
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// In the order of NVML's indices: by PCI address, without the GPUs that the driver excludes.
std::vector<const Unit*> gpus_of(const Inventory& inventory) {
  std::vector<const Unit*> gpus;
  for (const Unit& unit : inventory.units) {
    if (unit.device_class == "nvidia" && !unit.nodes.empty() && !unit.is_excluded) {
      gpus.push_back(&unit);
    }
  }
  return gpus;
}

void want_mig(std::vector<WantedNode>& nodes, const device::MigDevice& mig) {
  for (const std::string& path : mig.nodes) {
    want(nodes, path);
  }
}

void want_unit(std::vector<WantedNode>& nodes, const Unit& unit) {
  for (const std::string& path : unit.nodes) {
    if (!path.starts_with("/dev/dri/")) {
      want(nodes, path);
    }
  }
}

// Finds a GPU by index in the driver's order, by UUID or by PCI address, or a MIG device as "0:1" or by UUID.
std::vector<WantedNode> find_nodes(const std::string& entry, const Inventory& inventory) {
  const std::vector<const Unit*> gpus = gpus_of(inventory);
  std::vector<WantedNode> nodes;
  const auto want_part = [&nodes](const Unit& unit, const device::MigDevice& mig) {
    want_unit(nodes, unit);
    want_mig(nodes, mig);
  };
  if (const auto index = parse_number<std::uint32_t>(entry)) {
    if (*index < gpus.size()) {
      want_unit(nodes, *gpus[*index]);
    }
    return nodes;
  }
  const std::size_t colon = entry.find(':');
  if (colon != std::string::npos && entry.find_first_not_of("0123456789:") == std::string::npos) {
    const auto gpu = parse_number<std::uint32_t>(std::string_view(entry).substr(0, colon));
    const auto mig = parse_number<std::uint32_t>(std::string_view(entry).substr(colon + 1));
    if (gpu && mig && *gpu < gpus.size() && *mig < gpus[*gpu]->mig.size()) {
      want_part(*gpus[*gpu], gpus[*gpu]->mig[*mig]);
    }
    return nodes;
  }
  for (const Unit* unit : gpus) {
    const bool by_uuid = !unit->uuid.empty() && equal_ignoring_case(unit->uuid, entry);
    if (by_uuid || (!unit->pci.empty() && unit->pci == entry)) {
      want_unit(nodes, *unit);
    }
    for (const device::MigDevice& mig : unit->mig) {
      if (!mig.uuid.empty() && equal_ignoring_case(mig.uuid, entry)) {
        want_part(*unit, mig);
      }
    }
  }
  return nodes;
}

void want_visible(Resolved& resolved, const VisibleDevices& visible, const Inventory& inventory) {
  for (const std::string& id : visible.ids) {
    const std::vector<WantedNode> found = find_nodes(id, inventory);
    if (found.empty()) {
      resolved.unknown.push_back(id);
    }
    for (const WantedNode& node : found) {
      want(resolved.nodes, node.path);
    }
  }
  if (visible.all) {
    for (const Unit* unit : gpus_of(inventory)) {
      want_unit(resolved.nodes, *unit);
      std::ranges::for_each(unit->mig, [&](const device::MigDevice& mig) { want_mig(resolved.nodes, mig); });
    }
  }
}

// The nodes that are not of one GPU.
void want_shared(Resolved& resolved, const Request& request, const Inventory& inventory) {
  want(resolved.nodes, "/dev/nvidiactl");
  if (request.capabilities.has("compute")) {
    want(resolved.nodes, "/dev/nvidia-uvm");
    want(resolved.nodes, "/dev/nvidia-uvm-tools");
  } else {
    resolved.not_wanted = {"/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"};
  }
  if (request.capabilities.has("display") && inventory.find("/dev/nvidia-modeset") != nullptr) {
    want(resolved.nodes, "/dev/nvidia-modeset");
  }
  for (const std::uint32_t channel : request.imex_channels) {
    want(resolved.nodes, "/dev/nvidia-caps-imex-channels/channel" + std::to_string(channel));
  }
  // /proc/driver/nvidia-caps/mig-minors lists config as 1 and monitor as 2, on every driver that has them.
  if (request.configures_mig) {
    want(resolved.nodes, "/dev/nvidia-caps/nvidia-cap1");
  }
  if (request.monitors_mig) {
    want(resolved.nodes, "/dev/nvidia-caps/nvidia-cap2");
  }
}

}  // namespace

Resolved resolve(const Request& request, const Inventory& inventory) {
  Resolved resolved;
  want_visible(resolved, request.visible, inventory);
  if (request.visible.none || !resolved.nodes.empty()) {
    want_shared(resolved, request, inventory);
  }
  return resolved;
}

std::vector<WantedNode> nodes_of(const std::string& id, const Inventory& inventory) {
  return find_nodes(id.substr(0, id.find("::")), inventory);
}

}  // namespace hf::nvidia
