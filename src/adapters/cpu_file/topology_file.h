// TopologyFile: a machine in a file, so that it can be planned for on any other.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/cpu/topology.h"

namespace hf::cpu_file {

// {"cpus": [[cpu, core, socket, numa, cache], …], "num_cpus": …, …}. Counters that are there are honoured, even where
// they contradict the rows. Refused: a CPU twice, none, and a CPU number left out which the file does not own up to,
// by "offline" or by a "num_cpus" that counts the rows.
Result<cpu::Topology> parse_topology(std::string_view text);

}  // namespace hf::cpu_file
