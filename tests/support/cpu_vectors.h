// CpuVectors: kubelet's own answers about CPUs, as they were recorded, where the folder with them is there.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "core/cpu/topology.h"

namespace hf::test {

// The whole file; null where there is none: a test then skips, saying why.
const nlohmann::json& cpu_vectors();
cpu::Topology topology_of(const nlohmann::json& json);  // rows and counters
cpu::Topology recorded_topology(const std::string& name);
cpu::CpuSet cpus(const nlohmann::json& text);
std::string error_of(const nlohmann::json& entry);  // "" where kubelet had none

}  // namespace hf::test
