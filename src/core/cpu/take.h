// Take: chooses the free CPUs for a request, exactly as kubelet's static policy does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/cpu/cpu_set.h"
#include "core/cpu/layout.h"

namespace hf::cpu {

enum class CpuOrder : std::uint8_t { packed, spread };  // spread: no core is filled before every core has a CPU in use
enum class CacheUse : std::uint8_t { ignored, preferred };

// Where cores have unlike numbers of threads (hybrid, a thread offline), kubelet compares with the mean, which may be
// that of no core, and takes halves of used cores before whole free ones.
enum class UnequalCores : std::uint8_t { largest_first, as_kubelet };

struct Packing {
  CpuOrder order = CpuOrder::packed;
  CacheUse caches = CacheUse::ignored;
  UnequalCores unequal_cores = UnequalCores::largest_first;
};

// Why some of the CPUs were chosen, for people to read.
struct Step {
  std::string because;  // "whole NUMA nodes"
  CpuSet cpus;
};
using Explanation = std::vector<Step>;

// Takes whole NUMA nodes and sockets, then caches where preferred, then whole cores, then single CPUs.
Result<CpuSet> take_packed(const Layout& layout, const CpuSet& available, std::uint32_t count, Packing packing,
                           Explanation* explanation = nullptr);

// Takes CPUs evenly from as few NUMA nodes as possible, `group` CPUs at a time.
Result<CpuSet> take_distributed(const Layout& layout, const CpuSet& available, std::uint32_t count, std::uint32_t group,
                                Explanation* explanation = nullptr);

}  // namespace hf::cpu
