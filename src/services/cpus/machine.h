// Machine: the topology that a word means: this machine, a file, a description or a name.
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

// "": this machine, with the seats of its devices. Files are looked for beside `folder` first.
Result<Machine> read_machine(const std::string& word, const std::string& folder = "");

// The NUMA node of a device as people name it: /dev/nvidia0, nvidia0, or a PCI address.
Result<cpu::NumaId> seat_of(const cpu::Topology& topology, std::string_view device);

}  // namespace hf::cpus
