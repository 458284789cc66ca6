#include "adapters/nvidia/driver.h"

#include <algorithm>
#include <array>

#include "core/base/text.h"
#include "kernel/files/device_node.h"
#include "kernel/files/file.h"
#include "kernel/files/rooted_fs.h"

namespace hf::nvidia {
namespace {

using device::Inventory;
using device::Unit;

constexpr const char* kVendor = "0x10de";

std::string read(const kernel::Host& host, const std::string& path) {
  return kernel::read_text(host.root.get(), path).value_or("");
}

std::optional<int> parse_numa(const std::string& text) {
  const std::optional<std::uint32_t> number = parse_number<std::uint32_t>(trim(text));
  return number ? std::optional(int(*number)) : std::nullopt;  // -1 where the host has no NUMA nodes
}

// "../../../devices/pci0000:60/0000:60:01.0/0000:65:00.0" without its beginning.
std::string bus_in(const std::string& link) {
  const std::size_t start = link.find("/pci");
  return start == std::string::npos ? "" : link.substr(start + 1);
}

// PCI functions that are NVIDIA's GPUs: display controllers (03xx), whether a driver is loaded or not.
std::vector<std::string> read_pci_gpus(const kernel::Host& host) {
  std::vector<std::string> found;
  for (const std::string& pci : kernel::list_names(host.root.get(), "sys/bus/pci/devices")) {
    const std::string directory = "sys/bus/pci/devices/" + pci;
    const std::string kind = read(host, directory + "/class");
    const bool is_display = kind.starts_with("0x0300") || kind.starts_with("0x0302");
    if (is_display && trim(read(host, directory + "/vendor")) == kVendor) {
      found.push_back(pci);
    }
  }
  return found;
}

void add_dri_nodes(const kernel::Host& host, Unit& unit) {
  for (const std::string& name : kernel::list_names(host.root.get(), "sys/bus/pci/devices/" + unit.pci + "/drm")) {
    if (name.starts_with("card") || name.starts_with("renderD")) {
      unit.nodes.push_back("/dev/dri/" + name);
    }
  }
}

// Adds a device node that should exist with its expected numbers, even if it is missing.
void expect_node(Inventory& inventory, const std::string& path) {
  const auto known = std::ranges::find(inventory.nodes, path, &device::Node::path);
  const std::optional<device::NodeRole> role = device::role_of(device::built_in_classes(), path, kVendor);
  if (known != inventory.nodes.end() || !role) {
    return;
  }
  device::Node node;
  node.path = path;
  node.device_class = "nvidia";
  node.part = role->pattern->part;
  node.expected = numbers_of(*role->pattern, path, inventory.drivers);
  inventory.nodes.push_back(std::move(node));
}

Unit unit_of(const kernel::Host& host, const Gpu& gpu) {
  Unit unit;
  unit.device_class = "nvidia";
  unit.name = gpu.minor ? std::to_string(*gpu.minor) : gpu.pci;
  unit.uuid = gpu.uuid;
  unit.model = gpu.model;
  unit.pci = gpu.pci;
  unit.bus = bus_in(kernel::read_link(host.root.get(), "sys/bus/pci/devices/" + gpu.pci));
  unit.numa = parse_numa(read(host, "sys/bus/pci/devices/" + gpu.pci + "/numa_node"));
  if (gpu.minor) {
    unit.nodes.push_back("/dev/nvidia" + std::to_string(*gpu.minor));
  }
  add_dri_nodes(host, unit);
  unit.is_excluded = gpu.is_excluded;
  if (gpu.is_excluded) {
    unit.health = device::Health::bad;
    unit.health_text = "excluded: the driver refuses to open it";
  }
  return unit;
}

std::string mig_directory_of(const Unit& unit) { return "proc/driver/nvidia/capabilities/gpu" + unit.name + "/mig"; }

}  // namespace

Gpu parse_gpu(std::string_view information, const std::string& pci) {
  Gpu gpu;
  gpu.pci = pci;
  for (const std::string_view line : split(information, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      continue;
    }
    const std::string_view key = trim(line.substr(0, colon));
    const std::string_view value = trim(line.substr(colon + 1));
    if (key == "Model") {
      gpu.model = value;
    } else if (key == "GPU UUID") {
      gpu.uuid = value;
    } else if (key == "Device Minor") {
      gpu.minor = parse_number<std::uint32_t>(value);
    } else if (key == "GPU Excluded") {
      gpu.is_excluded = value == "Yes";
    }
  }
  return gpu;
}

std::string parse_driver_version(std::string_view text) {
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with("NVRM version:")) {
      continue;
    }
    for (const std::string_view field : split_fields(line)) {
      const bool is_version =
          field.find('.') != std::string_view::npos && field.find_first_not_of("0123456789.") == std::string_view::npos;
      if (is_version) {
        return std::string(field);
      }
    }
  }
  return {};
}

std::map<std::string, std::uint32_t> parse_mig_minors(std::string_view text) {
  std::map<std::string, std::uint32_t> minors;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> fields = split_fields(line);
    const std::optional<std::uint32_t> minor =
        fields.size() == 2 ? parse_number<std::uint32_t>(fields[1]) : std::nullopt;
    if (minor) {
      minors.emplace(fields[0], *minor);
    }
  }
  return minors;
}

std::map<std::string, std::string> parse_params(std::string_view text) {
  std::map<std::string, std::string> params;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos) {
      params.emplace(trim(line.substr(0, colon)), trim(line.substr(colon + 1)));
    }
  }
  return params;
}

void add_to(Inventory& inventory, const kernel::Host& host, Gpus gpus) {
  device::DriverState state;
  state.device_class = "nvidia";
  state.version = parse_driver_version(read(host, "proc/driver/nvidia/version"));
  for (const char* module : {"nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem"}) {
    if (kernel::exists(host.root.get(), std::string("sys/module/") + module)) {
      state.modules.emplace_back(module);
    }
  }
  const std::vector<std::string> in_driver = kernel::list_names(host.root.get(), "proc/driver/nvidia/gpus");
  const std::vector<std::string> on_bus =
      gpus == Gpus::on_bus || in_driver.empty() ? read_pci_gpus(host) : std::vector<std::string>();
  for (const std::string& pci : in_driver) {
    const Gpu gpu = parse_gpu(read(host, "proc/driver/nvidia/gpus/" + pci + "/information"), pci);
    Unit unit = unit_of(host, gpu);
    for (const std::string& path : unit.nodes) {
      expect_node(inventory, path);
    }
    inventory.units.push_back(std::move(unit));
  }
  for (const std::string& pci : on_bus) {
    if (std::ranges::find(in_driver, pci) == in_driver.end()) {
      Unit unit = unit_of(host, {pci, "", "", std::nullopt, false});
      unit.health = device::Health::bad;
      unit.health_text = state.version.empty() ? "no driver is loaded" : "the driver does not know it";
      inventory.units.push_back(std::move(unit));
    }
  }
  if (!state.version.empty()) {
    for (const char* path : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}) {
      expect_node(inventory, path);
    }
  }
  const bool has_any = !state.version.empty() || !on_bus.empty() || !in_driver.empty() || !state.modules.empty();
  if (has_any) {
    inventory.states.push_back(std::move(state));
  }
}

bool has_mig_instances(const kernel::Host& host, const Unit& unit) {
  return std::ranges::any_of(kernel::list_names(host.root.get(), mig_directory_of(unit)),
                             [](const std::string& name) { return name.starts_with("gi"); });
}

std::string describe_mig_instances(const kernel::Host& host, const Unit& unit) {
  const std::string directory = mig_directory_of(unit);
  std::string text;
  for (const std::string& instance : kernel::list_names(host.root.get(), directory)) {
    const std::string below = std::string(directory).append("/").append(instance);
    text.append(instance).append(" ").append(join(kernel::list_names(host.root.get(), below), " ")).append("\n");
  }
  return text;
}

void add_mig_nodes(Inventory& inventory, const kernel::Host& host) {
  if (std::ranges::all_of(inventory.units, [](const Unit& unit) { return unit.mig.empty(); })) {
    return;  // the driver's list has thousands of lines
  }
  const std::map<std::string, std::uint32_t> minors =
      parse_mig_minors(read(host, "proc/driver/nvidia-caps/mig-minors"));
  std::vector<std::string> paths;
  for (Unit& unit : inventory.units) {
    for (device::MigDevice& mig : unit.mig) {
      const std::string gpu = "gpu" + unit.name + "/gi" + std::to_string(mig.gpu_instance);
      const std::string part = gpu + "/ci" + std::to_string(mig.compute_instance);
      for (const std::string& name : {gpu + "/access", part + "/access"}) {
        if (const auto minor = minors.find(name); minor != minors.end()) {
          mig.nodes.push_back("/dev/nvidia-caps/nvidia-cap" + std::to_string(minor->second));
          paths.push_back(mig.nodes.back());
        }
      }
    }
  }
  for (const std::string& path : paths) {
    expect_node(inventory, path);
  }
}

}  // namespace hf::nvidia
