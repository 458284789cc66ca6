// KubeletRules: how kubelet takes CPUs, written down a second time: slowly, with plain sets, and with its faults. What
// it answers sanely, we must answer too.
#pragma once

#include <cstdint>
#include <optional>

#include "core/cpu/take.h"
#include "core/cpu/topology.h"

namespace hf::test {

// None: it gives up, or would never end.
std::optional<cpu::CpuSet> kubelet_packed(const cpu::Topology& topology, const cpu::CpuSet& available,
                                          std::uint32_t count, cpu::Packing packing);
std::optional<cpu::CpuSet> kubelet_distributed(const cpu::Topology& topology, const cpu::CpuSet& available,
                                               std::uint32_t count, std::uint32_t group);

}  // namespace hf::test
