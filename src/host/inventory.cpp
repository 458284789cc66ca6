#include "host/inventory.h"

#include <algorithm>
#include <map>
#include <set>

#include "adapters/nvidia/driver.h"
#include "core/base/text.h"
#include "kernel/files/device_node.h"
#include "kernel/files/file.h"

namespace hf::host {
namespace {

using device::Inventory;

// Every path that may be a device node of a class: those in sysfs, and all in the directories of the classes' patterns.
std::set<std::string> candidates(const kernel::Host& host, const device::DeviceClasses& classes,
                                 const std::map<std::string, device::Device>& known) {
  std::set<std::string> directories;
  for (const device::DeviceClass& entry : classes) {
    for (const device::NodePattern& pattern : entry.nodes) {
      directories.insert(pattern.glob.substr(0, pattern.glob.rfind('/')));
    }
  }
  std::set<std::string> paths;
  for (const auto& [path, device] : known) {
    paths.insert(path);
  }
  for (const std::string& directory : directories) {
    for (const std::string& name : kernel::list_names(host.root.get(), kernel::below_root(directory))) {
      paths.insert(std::string(directory).append("/").append(name));
    }
  }
  return paths;
}

void add_node(Inventory& inventory, const kernel::Host& host, const device::DeviceClasses& classes,
              const std::string& path, const std::optional<device::Device>& known) {
  if (!device::role_of(classes, path) && !path.starts_with("/dev/dri/")) {
    return;  // most of /dev belongs to no class
  }
  const std::optional<kernel::NodeOnHost> live = kernel::read_node(host, path);
  const std::optional<device::Device> numbers = known ? known : live ? std::optional(live->device) : std::nullopt;
  const bool is_of_vendor = numbers && path.starts_with("/dev/dri/");
  const std::string vendor = is_of_vendor ? kernel::read_hardware(host, *numbers, "vendor") : std::string();
  const std::optional<device::NodeRole> role = device::role_of(classes, path, vendor);
  if (!role || !(live || known)) {
    return;
  }
  device::Node node;
  node.path = path;
  node.device_class = role->device_class->name;
  node.part = role->pattern->part;
  node.expected = known ? known : numbers_of(*role->pattern, path, inventory.drivers);
  if (live) {
    node.live = live->device;
    node.mode = live->mode;
    node.uid = live->uid;
    node.gid = live->gid;
  }
  const bool is_nvidia = node.device_class == "nvidia";  // its GPUs come from the driver's own list
  if (node.part == device::Part::unit && !is_nvidia) {
    device::Unit unit;
    unit.device_class = node.device_class;
    unit.name = base_name(path);
    unit.model = role->device_class->title;
    unit.nodes = {path};
    const std::string numa = numbers ? kernel::read_hardware(host, *numbers, "numa_node") : std::string();
    const std::optional<std::uint32_t> number = parse_number<std::uint32_t>(numa);
    unit.numa = number ? std::optional(int(*number)) : std::nullopt;
    unit.health = live ? device::Health::good : device::Health::bad;
    unit.health_text = live ? "" : "its node is missing";
    inventory.units.push_back(std::move(unit));
  }
  inventory.nodes.push_back(std::move(node));
}

}  // namespace

Inventory take_inventory(const kernel::Host& host, const config::Config& config, nvidia::Gpus gpus) {
  Inventory inventory;
  const Result<std::string> drivers = kernel::read_text(host.root.get(), "proc/devices");
  inventory.drivers = device::parse_driver_names(drivers.value_or(""));
  if (!drivers) {
    inventory.notes.push_back(drivers.error().message);
  }
  std::map<std::string, device::Device> known;
  // sysfs does not list NVIDIA's devices.
  const bool is_in_sysfs =
      std::ranges::any_of(config.classes, [](const device::DeviceClass& entry) { return entry.name != "nvidia"; });
  for (const kernel::KnownDevice& device :
       is_in_sysfs ? kernel::read_known_devices(host) : std::vector<kernel::KnownDevice>()) {
    known.emplace(device.path, device.device);
  }
  for (const std::string& path : candidates(host, config.classes, known)) {
    const auto numbers = known.find(path);
    add_node(inventory, host, config.classes, path,
             numbers == known.end() ? std::nullopt : std::optional(numbers->second));
  }
  nvidia::add_to(inventory, host, gpus);
  nvidia::add_mig_nodes(inventory, host);
  std::ranges::sort(inventory.nodes, {}, &device::Node::path);
  return inventory;
}

device::DeviceAllowContext device_allow_context(const kernel::Host& host, const Inventory& inventory) {
  return {inventory.drivers, [&host](const std::string& path) -> std::optional<device::Device> {
            const std::optional<kernel::NodeOnHost> node = kernel::read_node(host, path);
            return node ? std::optional(node->device) : std::nullopt;
          }};
}

}  // namespace hf::host
