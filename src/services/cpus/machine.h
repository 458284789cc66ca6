// Machine: a CPU topology by its source: this machine, a file, a synthetic description or the name of a known machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/cpu/topology.h"

namespace hf::cpus {

struct Machine {
  std::string title;  // "this machine", the file, …
  cpu::Topology topology;
};

// `source`: "" means this machine, with the NUMA nodes of its devices. A relative path is tried in `directory` first.
Result<Machine> read_machine(const std::string& source, const std::string& directory = "");

// The NUMA node of a device, given as /dev/nvidia0, nvidia0, or a PCI address.
Result<cpu::NumaId> numa_node_of(const cpu::Topology& topology, std::string_view device);

}  // namespace hf::cpus
