#include "adapters/nvidia/request.h"

#include <algorithm>

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

std::vector<const Unit*> gpus_of(const Inventory& inventory) {
  std::vector<const Unit*> gpus;
  for (const Unit& unit : inventory.units) {
    if (unit.device_class == "nvidia" && !unit.nodes.empty()) {
      gpus.push_back(&unit);
    }
  }
  return gpus;
}

void want_unit(std::vector<WantedNode>& nodes, const Unit& unit) {
  for (const std::string& path : unit.nodes) {
    if (!path.starts_with("/dev/dri/")) {
      want(nodes, path);
    }
  }
}

// By index in the driver's order, by UUID or by its beginning, by PCI address, or a MIG device as "0:1" or by UUID.
std::vector<WantedNode> find_nodes(const std::string& word, const Inventory& inventory) {
  const std::vector<const Unit*> gpus = gpus_of(inventory);
  std::vector<WantedNode> nodes;
  const auto want_mig = [&nodes](const Unit& unit, const device::MigDevice& mig) {
    want_unit(nodes, unit);
    for (const std::string& path : mig.nodes) {
      want(nodes, path);
    }
  };
  if (const auto index = parse_number<std::uint32_t>(word)) {
    if (*index < gpus.size()) {
      want_unit(nodes, *gpus[*index]);
    }
    return nodes;
  }
  const std::size_t colon = word.find(':');
  if (colon != std::string::npos && word.find_first_not_of("0123456789:") == std::string::npos) {
    const auto gpu = parse_number<std::uint32_t>(std::string_view(word).substr(0, colon));
    const auto mig = parse_number<std::uint32_t>(std::string_view(word).substr(colon + 1));
    if (gpu && mig && *gpu < gpus.size() && *mig < gpus[*gpu]->mig.size()) {
      want_mig(*gpus[*gpu], gpus[*gpu]->mig[*mig]);
    }
    return nodes;
  }
  for (const Unit* unit : gpus) {
    const bool by_uuid = word.starts_with("GPU-") && !unit->uuid.empty() && unit->uuid.starts_with(word);
    if (by_uuid || (!unit->pci.empty() && unit->pci == word)) {
      want_unit(nodes, *unit);
    }
    for (const device::MigDevice& mig : unit->mig) {
      if (!mig.uuid.empty() && mig.uuid == word) {
        want_mig(*unit, mig);
      }
    }
  }
  return nodes;
}

}  // namespace

Request request_in(const std::map<std::string, std::string>& environment) {
  Request request{find_in(environment, "NVIDIA_VISIBLE_DEVICES"), find_in(environment, "NVIDIA_DRIVER_CAPABILITIES"),
                  find_in(environment, "NVIDIA_IMEX_CHANNELS"), find_in(environment, "NVIDIA_MIG_CONFIG_DEVICES"),
                  find_in(environment, "NVIDIA_MIG_MONITOR_DEVICES")};
  // An image of the time before NVIDIA_VISIBLE_DEVICES says CUDA_VERSION and means all.
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
    const std::string word(trim(part));
    if (word.empty() || word == "void" || word == "none") {
      continue;
    }
    if (word == "all") {
      for (const Unit* unit : gpus_of(inventory)) {
        want_unit(resolved.nodes, *unit);
      }
      continue;
    }
    const std::vector<WantedNode> found = find_nodes(word, inventory);
    if (found.empty()) {
      resolved.unknown.push_back(word);
    }
    for (const WantedNode& node : found) {
      want(resolved.nodes, node.path);
    }
  }
  if (resolved.nodes.empty()) {
    return resolved;
  }
  const std::string capabilities = request.capabilities.empty() ? "utility,compute" : request.capabilities;
  const auto has = [&capabilities](std::string_view word) {
    return has_word(capabilities, "all") || has_word(capabilities, word);
  };
  want(resolved.nodes, "/dev/nvidiactl");
  if (has("compute")) {
    want(resolved.nodes, "/dev/nvidia-uvm");
    want(resolved.nodes, "/dev/nvidia-uvm-tools");
  } else {
    resolved.not_wanted = {"/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"};
  }
  const bool shows = has("display") || has("graphics");
  if (shows && inventory.find("/dev/nvidia-modeset") != nullptr) {
    want(resolved.nodes, "/dev/nvidia-modeset");
  }
  for (const std::string_view part : split(request.imex, ',')) {
    if (parse_number<std::uint32_t>(trim(part))) {
      want(resolved.nodes, "/dev/nvidia-caps-imex-channels/channel" + std::string(trim(part)));
    }
  }
  return resolved;
}

bool is_nvidia_hook(const std::string& path) {
  const std::string_view name = name_in(path);
  return name == "nvidia-container-runtime-hook" || name == "nvidia-container-toolkit" ||
         name == "nvidia-container-cli";
}

}  // namespace hf::nvidia
