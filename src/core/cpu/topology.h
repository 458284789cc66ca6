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
  std::uint32_t core = 0;  // the lowest CPU of the core, as in kubelet
  std::uint32_t socket = 0;
  NumaId numa;
  std::uint32_t cache = 0;  // the last-level cache, or the socket where there is none

  friend bool operator==(const Cpu&, const Cpu&) = default;
};

// The number of each, as kubelet stores them. Kubelet divides by these, so a topology file may have counters that
// differ from its rows.
struct Counters {
  std::uint32_t cpus = 0;
  std::uint32_t cores = 0;
  std::uint32_t sockets = 0;
  std::uint32_t numa_nodes = 0;
  std::uint32_t caches = 0;

  friend bool operator==(const Counters&, const Counters&) = default;
};

// The distance between two NUMA nodes, in the units of the firmware's table (10: a node to itself).
struct Distance {
  NumaId from;
  NumaId to;
  std::uint32_t value = 0;

  friend bool operator==(const Distance&, const Distance&) = default;
};

struct DeviceLocation {
  std::string name;            // "/dev/nvidia0", or its PCI address
  std::optional<NumaId> numa;  // absent: the machine does not report it

  friend bool operator==(const DeviceLocation&, const DeviceLocation&) = default;
};

// The memory of a NUMA node.
struct NodeMemory {
  NumaId node;
  std::uint64_t bytes = 0;

  friend bool operator==(const NodeMemory&, const NodeMemory&) = default;
};

struct Topology {
  std::vector<Cpu> cpus;  // ascending; only online CPUs
  Counters counters;
  std::vector<Distance> distances;
  std::vector<DeviceLocation> devices;
  CpuSet offline;
  CpuSet isolated;                      // excluded from the scheduler at boot (isolcpus)
  CpuSet efficient;                     // the efficiency cores of a hybrid machine
  std::string model = {};               // "AMD EPYC 7742 64-Core Processor"; "" where it is not known
  std::vector<NodeMemory> memory = {};  // by NUMA node; empty where it is not known

  friend bool operator==(const Topology&, const Topology&) = default;
};

// Sorts and counts the rows. Refuses an empty list, duplicate CPUs and CPU numbers that no kernel supports.
Result<Topology> make_topology(std::vector<Cpu> cpus);
Counters count(const std::vector<Cpu>& cpus);
std::uint32_t threads_per_core(const Counters& counters);  // the mean, which kubelet uses
CpuSet all_cpus(const Topology& topology);
CpuSet cpus_of(const Topology& topology, NumaId node);
std::vector<NumaId> numa_nodes_of(const Topology& topology, const CpuSet& cpus);
CpuSet numbers_of(const std::vector<NumaId>& nodes);                       // as cpuset.mems lists them
std::vector<NumaId> numa_nodes(const Topology& topology);                  // ascending
std::uint32_t distance(const Topology& topology, NumaId from, NumaId to);  // 10 or 20 where the machine has no table

}  // namespace hf::cpu
