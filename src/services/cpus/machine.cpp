#include "services/cpus/machine.h"

#include <algorithm>
#include <utility>

#include <fcntl.h>

#include "adapters/config/config.h"
#include "adapters/cpu_file/topology_file.h"
#include "core/base/text.h"
#include "core/cpu/machine.h"
#include "kernel/file.h"
#include "kernel/host.h"
#include "kernel/topology.h"
#include "node/inventory.h"

namespace hf::cpus {
namespace {

constexpr std::string_view kSynthetic = "synthetic:";

void seat_devices(const kernel::Host& host, cpu::Topology& topology) {
  const device::Inventory inventory =
      node::take_inventory(host, config::read_config(host).value_or(config::Config()), node::Libraries::leave);
  for (const device::Unit& unit : inventory.units) {
    if (unit.pci.empty() && !unit.numa) {
      continue;  // no hardware: /dev/fuse sits nowhere
    }
    cpu::SeatedDevice device{.name = unit.nodes.empty() ? unit.pci : unit.nodes.front(), .numa = {}};
    if (unit.numa && *unit.numa >= 0) {
      device.numa = cpu::NumaId{std::uint32_t(*unit.numa)};
    }
    topology.devices.push_back(std::move(device));
  }
}

Result<Machine> read_this_machine() {
  const kernel::Host host = TRY(kernel::open_host());
  cpu::Topology topology = TRY(kernel::read_topology(host));
  seat_devices(host, topology);
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

// Beside the folder, or where we are.
std::string find_file(const std::string& word, const std::string& folder) {
  if (!folder.empty() && !word.starts_with('/') && kernel::exists(AT_FDCWD, folder + "/" + word)) {
    return folder + "/" + word;
  }
  return kernel::exists(AT_FDCWD, word) ? word : "";
}

}  // namespace

Result<Machine> read_machine(const std::string& word, const std::string& folder) {
  if (word.empty()) {
    return read_this_machine();
  }
  if (word.starts_with(kSynthetic)) {
    cpu::Topology topology = TRY(kernel::read_synthetic(word.substr(kSynthetic.size())));
    return Machine{.title = word, .topology = std::move(topology)};
  }
  if (const std::string file = find_file(word, folder); !file.empty()) {
    const Result<cpu::Topology> topology = parse_file(TRY(kernel::read_regular_file(file)));
    if (!topology) {
      return fail(topology.error().code, file + ": " + topology.error().message);
    }
    return Machine{.title = file, .topology = *topology};
  }
  if (const std::optional<cpu::Topology> known = cpu::find_machine(word)) {
    return Machine{.title = word, .topology = *known};
  }
  return fail(std::errc::invalid_argument, "topology " + quote(word) + ": no such file, and no machine of that name (" +
                                               names_of_machines() + ", or synthetic:…)");
}

Result<cpu::NumaId> seat_of(const cpu::Topology& topology, std::string_view device) {
  const auto is_it = [&](const cpu::SeatedDevice& seated) {
    return seated.name == device || name_in(seated.name) == device;
  };
  const auto found = std::ranges::find_if(topology.devices, is_it);
  if (found == topology.devices.end()) {
    return fail(std::errc::invalid_argument, "device " + quote(device) + ": this topology has no such device");
  }
  if (!found->numa) {
    return fail(std::errc::invalid_argument,
                "device " + quote(device) + ": the machine does not say on which NUMA node it sits");
  }
  return *found->numa;
}

}  // namespace hf::cpus
