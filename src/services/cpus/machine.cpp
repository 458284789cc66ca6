#include "services/cpus/machine.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fcntl.h>

#include "adapters/config/config.h"
#include "adapters/cpu_file/topology_file.h"
#include "core/base/suggest.h"
#include "core/base/text.h"
#include "core/cpu/machine.h"
#include "host/inventory.h"
#include "kernel/cpu/topology.h"
#include "kernel/files/file.h"
#include "kernel/files/host.h"

namespace hf::cpus {
namespace {

constexpr std::string_view kSynthetic = "synthetic:";

void locate_devices(const kernel::Host& host, cpu::Topology& topology) {
  const device::Inventory inventory =
      host::take_inventory(host, config::read_config(host).value_or(config::Config()), host::Libraries::leave);
  for (const device::Unit& unit : inventory.units) {
    if (unit.pci.empty() && !unit.numa) {
      continue;  // no hardware: /dev/fuse is on no NUMA node
    }
    cpu::DeviceLocation device{.name = unit.nodes.empty() ? unit.pci : unit.nodes.front(), .numa = {}};
    if (unit.numa && *unit.numa >= 0) {
      device.numa = cpu::NumaId{std::uint32_t(*unit.numa)};
    }
    topology.devices.push_back(std::move(device));
  }
}

Result<Machine> read_this_machine() {
  const kernel::Host host = TRY(kernel::open_host());
  cpu::Topology topology = TRY(kernel::read_topology(host));
  locate_devices(host, topology);
  return Machine{.title = "this machine", .topology = std::move(topology)};
}

Result<cpu::Topology> parse_file(const std::string& text) {
  return trim(text).starts_with('<') ? kernel::read_hwloc_xml(text) : cpu_file::parse_topology(text);
}

std::string names_of_machines() {
  std::vector<std::string> names;
  for (const cpu::KnownMachine& machine : cpu::known_machines()) {
    names.push_back(machine.name);
  }
  return join(names, ", ");
}

// Relative to `directory`, or to the current directory; "" where there is no such file.
std::string find_file(const std::string& source, const std::string& directory) {
  if (!directory.empty() && !source.starts_with('/') && kernel::exists(AT_FDCWD, directory + "/" + source)) {
    return directory + "/" + source;
  }
  return kernel::exists(AT_FDCWD, source) ? source : "";
}

}  // namespace

Result<Machine> read_machine(const std::string& source, const std::string& directory) {
  if (source.empty()) {
    return read_this_machine();
  }
  if (source.starts_with(kSynthetic)) {
    cpu::Topology topology = TRY(kernel::read_synthetic(source.substr(kSynthetic.size())));
    return Machine{.title = source, .topology = std::move(topology)};
  }
  if (const std::string file = find_file(source, directory); !file.empty()) {
    const Result<cpu::Topology> topology = parse_file(TRY(kernel::read_regular_file(file)));
    if (!topology) {
      return fail(topology.error().code, file + ": " + topology.error().message);
    }
    return Machine{.title = file, .topology = *topology};
  }
  if (const std::optional<cpu::Topology> known = cpu::find_machine(source)) {
    return Machine{.title = source, .topology = *known};
  }
  return fail(std::errc::invalid_argument, "topology " + quote(source) +
                                               ": no such file, and no machine of that name (" + names_of_machines() +
                                               ", or synthetic:…)");
}

Result<cpu::NumaId> numa_node_of(const cpu::Topology& topology, std::string_view device) {
  const auto is_named = [&](const cpu::DeviceLocation& located) {
    return located.name == device || base_name(located.name) == device;
  };
  const auto found = std::ranges::find_if(topology.devices, is_named);
  if (found == topology.devices.end()) {
    std::vector<std::string> names;
    std::ranges::transform(topology.devices, std::back_inserter(names), &cpu::DeviceLocation::name);
    const std::string all = names.empty() ? ", and no other" : "; it has " + join(names, ", ");
    std::ranges::transform(topology.devices, std::back_inserter(names),
                           [](const cpu::DeviceLocation& located) { return std::string(base_name(located.name)); });
    return fail(std::errc::invalid_argument,
                "device " + quote(device) + ": this topology has no such device" + all + did_you_mean(device, names));
  }
  if (!found->numa) {
    return fail(std::errc::invalid_argument,
                "device " + quote(device) + ": the machine does not say on which NUMA node it sits");
  }
  return *found->numa;
}

}  // namespace hf::cpus
