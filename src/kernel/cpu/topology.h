// Topology: the CPUs of this host, or of another machine that is described in a format of hwloc.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/cpu/topology.h"
#include "kernel/files/host.h"

namespace hf::kernel {

// Every online CPU, whatever cpuset this process runs in. Devices are not included.
Result<cpu::Topology> read_topology(const Host& host);

Result<cpu::Topology> read_hwloc_xml(const std::string& text);         // lstopo --of xml
Result<cpu::Topology> read_synthetic(const std::string& description);  // "pack:2 numa:2 l3:1 core:8 pu:2"

}  // namespace hf::kernel
