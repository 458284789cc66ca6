// Topology: the CPUs of a machine and which core, socket, NUMA node and last-level cache each belongs to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/strong_id.h"
#include "core/cpu/cpu_set.h"

namespace hf::cpu {

using NumaId = StrongId<struct NumaTag, std::uint32_t>;

struct Cpu {
  std::uint32_t id = 0;
  std::uint32_t core = 0;  // kubelet's way: the lowest CPU of the core
  std::uint32_t socket = 0;
  NumaId numa;
  std::uint32_t cache = 0;  // the last-level cache, or the socket where there is none

  friend bool operator==(const Cpu&, const Cpu&) = default;
};

// How many of each, as kubelet stores them. It divides by these, so a file may give others than the rows have.
struct Counters {
  std::uint32_t cpus = 0;
  std::uint32_t cores = 0;
  std::uint32_t sockets = 0;
  std::uint32_t numa_nodes = 0;
  std::uint32_t caches = 0;

  friend bool operator==(const Counters&, const Counters&) = default;
};

// How far it is from one NUMA node to another, in the units of the firmware's table (10: itself).
struct Distance {
  NumaId from;
  NumaId to;
  std::uint32_t value = 0;

  friend bool operator==(const Distance&, const Distance&) = default;
};

struct SeatedDevice {
  std::string name;            // "/dev/nvidia0", or its PCI address
  std::optional<NumaId> numa;  // none: the machine does not say

  friend bool operator==(const SeatedDevice&, const SeatedDevice&) = default;
};

struct Topology {
  std::vector<Cpu> cpus;  // ascending, every one online
  Counters counters;
  std::vector<Distance> distances;
  std::vector<SeatedDevice> devices;
  CpuSet offline;
  CpuSet isolated;   // kept from the scheduler at boot (isolcpus)
  CpuSet efficient;  // the small cores of a hybrid machine

  friend bool operator==(const Topology&, const Topology&) = default;
};

// Ascending rows, counted. Refuses no CPU at all, one that is there twice and numbers no kernel has.
Result<Topology> make_topology(std::vector<Cpu> cpus);
Counters count(const std::vector<Cpu>& cpus);
std::uint32_t threads_per_core(const Counters& counters);  // the mean that kubelet reckons with
CpuSet all_cpus(const Topology& topology);
CpuSet cpus_of(const Topology& topology, NumaId node);
std::vector<NumaId> numa_nodes(const Topology& topology);                  // ascending
std::uint32_t distance(const Topology& topology, NumaId from, NumaId to);  // 10 and 20 where the machine does not say

}  // namespace hf::cpu
