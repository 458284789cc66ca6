// KubeletRules: a second, slow implementation of how kubelet allocates CPUs, with plain sets and with its bugs. Results
// of kubelet that make sense must be ours too.
#pragma once

#include <cstdint>
#include <optional>

#include "core/cpu/take.h"
#include "core/cpu/topology.h"

namespace hf::test {

// Absent: kubelet fails, or would never end.
std::optional<cpu::CpuSet> kubelet_packed(const cpu::Topology& topology, const cpu::CpuSet& available,
                                          std::uint32_t count, cpu::Packing packing);
std::optional<cpu::CpuSet> kubelet_distributed(const cpu::Topology& topology, const cpu::CpuSet& available,
                                               std::uint32_t count, std::uint32_t group);

}  // namespace hf::test
