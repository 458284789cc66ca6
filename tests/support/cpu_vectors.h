// CpuVectors: recorded CPU allocations of kubelet, if the directory with them exists.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "core/cpu/topology.h"

namespace hf::test {

// The whole file; null if there is none: a test then skips, with the reason.
const nlohmann::json& cpu_vectors();
cpu::Topology topology_of(const nlohmann::json& json);  // rows and counters
cpu::Topology recorded_topology(const std::string& name);
cpu::CpuSet cpus(const nlohmann::json& text);
std::string error_of(const nlohmann::json& entry);  // "" where kubelet had none

}  // namespace hf::test
