// Topology: the CPUs of this machine, or of another one that hwloc has a description of.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/cpu/topology.h"
#include "kernel/host.h"

namespace hf::kernel {

// Every online CPU, whatever cpuset we run in ourselves. Devices are left to whoever knows them.
Result<cpu::Topology> read_topology(const Host& host);

Result<cpu::Topology> read_hwloc_xml(const std::string& text);   // lstopo --of xml
Result<cpu::Topology> read_synthetic(const std::string& words);  // "pack:2 numa:2 l3:1 core:8 pu:2"

}  // namespace hf::kernel
