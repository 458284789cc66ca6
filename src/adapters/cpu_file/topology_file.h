// TopologyFile: the CPU topology of a machine in a file, so that any other machine can plan for it.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/cpu/topology.h"

namespace hf::cpu_file {

// {"cpus": [[cpu, core, socket, numa, cache], …], "num_cpus": …, …}. Counters that are there are honoured, even if
// they contradict the rows. Refused: a CPU twice, no CPU, and a gap in the CPU numbers that the file does not declare,
// by "offline" or by a "num_cpus" that counts the rows.
Result<cpu::Topology> parse_topology(std::string_view text);

}  // namespace hf::cpu_file
