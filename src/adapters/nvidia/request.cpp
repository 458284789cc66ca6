#include "adapters/nvidia/request.h"

#include <algorithm>
#include <cctype>

#include "core/base/text.h"

namespace hf::nvidia {
namespace {

using container::WantedNode;
using device::Inventory;
using device::Unit;

std::string find_in(const std::map<std::string, std::string>& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

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

}  // namespace

Request request_in(const std::map<std::string, std::string>& environment, bool is_privileged) {
  Request request{
      find_in(environment, "NVIDIA_VISIBLE_DEVICES"),     find_in(environment, "NVIDIA_DRIVER_CAPABILITIES"),
      find_in(environment, "NVIDIA_IMEX_CHANNELS"),       find_in(environment, "NVIDIA_MIG_CONFIG_DEVICES"),
      find_in(environment, "NVIDIA_MIG_MONITOR_DEVICES"), is_privileged};
  // Images older than NVIDIA_VISIBLE_DEVICES set only CUDA_VERSION, which requests all GPUs.
  const bool is_legacy = !environment.contains("NVIDIA_VISIBLE_DEVICES") && environment.contains("CUDA_VERSION") &&
                         !environment.contains("NVIDIA_REQUIRE_CUDA");
  request.visible = is_legacy ? "all" : request.visible;
  return request;
}

std::vector<WantedNode> nodes_of(const std::string& id, const Inventory& inventory) {
  return find_nodes(id.substr(0, id.find("::")), inventory);
}

Resolved resolve(const Request& request, const Inventory& inventory) {
  Resolved resolved;
  for (const std::string_view part : split(request.visible, ',')) {
    const std::string entry(trim(part));
    if (entry.empty() || equal_ignoring_case(entry, "void")) {
      continue;
    }
    if (equal_ignoring_case(entry, "none")) {  // the driver, but no GPU
      want(resolved.nodes, "/dev/nvidiactl");
      continue;
    }
    if (equal_ignoring_case(entry, "all")) {
      for (const Unit* unit : gpus_of(inventory)) {
        want_unit(resolved.nodes, *unit);
        std::ranges::for_each(unit->mig, [&](const device::MigDevice& mig) { want_mig(resolved.nodes, mig); });
      }
      continue;
    }
    const std::vector<WantedNode> found = find_nodes(entry, inventory);
    if (found.empty()) {
      resolved.unknown.push_back(entry);
    }
    for (const WantedNode& node : found) {
      want(resolved.nodes, node.path);
    }
  }
  if (resolved.nodes.empty()) {
    return resolved;
  }
  const std::string capabilities = request.capabilities.empty() ? "utility,compute" : request.capabilities;
  const auto has = [&capabilities](std::string_view capability) {
    return std::ranges::any_of(split(capabilities, ','), [capability](std::string_view part) {
      return equal_ignoring_case(trim(part), "all") || equal_ignoring_case(trim(part), capability);
    });
  };
  want(resolved.nodes, "/dev/nvidiactl");
  if (has("compute")) {
    want(resolved.nodes, "/dev/nvidia-uvm");
    want(resolved.nodes, "/dev/nvidia-uvm-tools");
  } else {
    resolved.not_wanted = {"/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"};
  }
  if (has("display") && inventory.find("/dev/nvidia-modeset") != nullptr) {
    want(resolved.nodes, "/dev/nvidia-modeset");
  }
  for (const std::string_view part : split(request.imex, ',')) {
    if (const std::optional<std::uint32_t> channel = parse_number<std::uint32_t>(trim(part))) {
      want(resolved.nodes, "/dev/nvidia-caps-imex-channels/channel" + std::to_string(*channel));
    }
  }
  // /proc/driver/nvidia-caps/mig-minors lists config as 1 and monitor as 2, on every driver that has them.
  if (request.is_privileged && request.mig_config == "all") {
    want(resolved.nodes, "/dev/nvidia-caps/nvidia-cap1");
  }
  if (request.is_privileged && request.mig_monitor == "all") {
    want(resolved.nodes, "/dev/nvidia-caps/nvidia-cap2");
  }
  return resolved;
}

bool is_nvidia_hook(const std::string& path) {
  const std::string_view name = base_name(path);
  return name == "nvidia-container-runtime-hook" || name == "nvidia-container-toolkit" ||
         name == "nvidia-container-cli";
}

}  // namespace hf::nvidia
