#include "services/plugin/catalog.h"

#include <algorithm>

#include "adapters/nvidia/driver.h"
#include "core/base/text.h"
#include "core/resource/cluster_device.h"
#include "host/inventory.h"
#include "kernel/files/device_node.h"
#include "kernel/files/file.h"

namespace hf::plugin {
namespace {

constexpr std::uint32_t kForAll = 0666;

// The driver's settings for the device nodes that it creates itself: "DeviceFileMode: 438".
container::Permissions permissions_of(const kernel::Host& host) {
  const std::map<std::string, std::string> params =
      nvidia::parse_params(kernel::read_text(host.root.get(), "proc/driver/nvidia/params").value_or(""));
  const auto number = [&params](const char* name, std::uint32_t otherwise) {
    const auto found = params.find(name);
    return found == params.end() ? otherwise : parse_number<std::uint32_t>(found->second).value_or(otherwise);
  };
  return {number("DeviceFileMode", kForAll), number("DeviceFileUID", 0), number("DeviceFileGID", 0)};
}

}  // namespace

void Catalog::set_config(const config::Config& config) {
  config_ = config;
  std::erase_if(config_.classes, [&config](const device::DeviceClass& one) {
    return std::ranges::find(config.kube.policy.rules, one.name, &resource::ResourceRule::device_class) ==
           config.kube.policy.rules.end();
  });
}

device::Inventory Catalog::read() const {
  device::Inventory inventory = host::take_inventory(host_, config_);
  if (answer_) {
    nvidia::add_to(inventory, *answer_);
    nvidia::add_mig_nodes(inventory, host_);
    std::ranges::sort(inventory.nodes, {}, &device::Node::path);
  }
  return inventory;
}

// Only nodes of classes that are offered: others may be missing for a reason.
bool Catalog::create_nodes(const device::Inventory& inventory) const {
  bool has_created = false;
  for (const device::Node& node : inventory.nodes) {
    const bool is_offered = device::find_class(config_.classes, node.device_class) != nullptr;
    const bool is_mig = node.path.starts_with("/dev/nvidia-caps/");
    const bool is_wanted = node.part != device::Part::extra || is_mig;
    if (config_.runtime.creates_nodes && is_offered && is_wanted && node.expected && node.live != node.expected) {
      const bool is_nvidia = node.device_class == "nvidia";
      has_created |= kernel::make_node_on(host_, {node.path, *node.expected,
                                                  is_nvidia ? permissions_of(host_) : container::Permissions{kForAll}})
                         .has_value();
    }
  }
  return has_created;
}

std::string Catalog::read_driver_key() const {
  std::string key = kernel::read_text(host_.root.get(), "proc/driver/nvidia/version").value_or("");
  for (const device::Unit& unit : inventory_.units) {
    if (unit.device_class != "nvidia") {
      continue;
    }
    key += unit.uuid + " " + unit.pci + "\n" + nvidia::describe_mig_instances(host_, unit);
  }
  return key;
}

void Catalog::refresh(const resource::DeviceProblems& problems) {
  inventory_ = read();
  if (create_nodes(inventory_)) {
    inventory_ = read();
  }
  driver_key_ = read_driver_key();
  resource::DeviceProblems all = problems;
  for (const device::Unit& unit : inventory_.units) {
    if (unit.device_class == "nvidia" && !unit.mig_enabled && nvidia::has_mig_instances(host_, unit)) {
      all.emplace(resource::key_of(unit), "it is cut into MIG devices, and NVML does not say what they are called");
    }
  }
  const config::KubeSettings& kube = config_.kube;
  offers_ = resource::offers_of(inventory_, config_.classes, kube.policy, all);
  cluster_offers_ = kube.dra.is_enabled
                        ? offers_of(inventory_, config_.classes, resource::cluster_policy(kube.policy), all)
                        : std::vector<resource::Offer>();
}

}  // namespace hf::plugin
