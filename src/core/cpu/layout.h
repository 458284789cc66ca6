// Layout: a Topology prepared for allocation. Ids become dense indices, and every list that kubelet's order needs is
// computed once, so that an allocation only counts and compares.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/cpu/cpu_set.h"
#include "core/cpu/topology.h"

namespace hf::cpu {

using Index = std::uint16_t;  // of a core, cache, socket or NUMA node, in the order of their ids

// All objects of one kind: cores, caches, sockets or NUMA nodes.
class Level {
 public:
  explicit Level(std::span<const std::uint32_t> id_of_row);  // one id for every row of Topology::cpus

  [[nodiscard]] std::uint32_t size() const { return std::uint32_t(ids_.size()); }
  [[nodiscard]] std::uint32_t id(Index index) const { return ids_[index]; }
  [[nodiscard]] std::uint32_t cpus_in(Index index) const { return counts_[index]; }
  [[nodiscard]] std::uint32_t most_cpus() const { return counts_.empty() ? 0 : std::ranges::max(counts_); }
  [[nodiscard]] Index of_row(std::size_t row) const { return of_row_[row]; }

 private:
  std::vector<std::uint32_t> ids_;
  std::vector<std::uint32_t> counts_;
  std::vector<Index> of_row_;
};

// The objects of an inner level that belong to each object of an outer one, such as the cores of a socket. A core that
// a topology file puts into two sockets is a part of both.
class Nesting {
 public:
  struct Part {
    Index inner = 0;
    std::span<const Index> cpus;  // those in both the outer and the inner object, ascending
  };

  Nesting(const Topology& topology, const Level& outer, const Level& inner);
  Nesting(const Nesting&) = delete;  // its parts have spans into cpus_
  Nesting& operator=(const Nesting&) = delete;

  [[nodiscard]] std::span<const Part> parts(Index outer) const {
    return std::span(parts_).subspan(first_[outer], first_[outer + 1] - first_[outer]);
  }

 private:
  std::vector<std::uint32_t> first_;  // index of the first part of each outer object, and the end
  std::vector<Part> parts_;
  std::vector<Index> cpus_;
};

struct Layout {
  explicit Layout(Topology machine);

  Topology topology;
  CpuSet cpus;
  std::vector<Index> row_of;  // by CPU: its index in Topology::cpus

  Level cores;
  Level real_cores;  // a core that a topology file puts into two sockets counts as two
  Level caches;
  Level sockets;
  Level numa_nodes;
  std::uint32_t most_threads;  // of a core
  bool has_equal_cores;        // all cores have that many

  Nesting all_numa_nodes;  // the outer object is the whole machine
  Nesting all_sockets;
  Nesting sockets_in_numa;
  Nesting numa_in_sockets;
  Nesting cores_in_sockets;
  Nesting cores_in_numa;
  Nesting caches_in_numa;
  Nesting cores_in_caches;
  Nesting threads_of_cores;  // one part per core: all its CPUs, in any socket
  Nesting threads_of_real_cores;
};

CpuSet whole_cores_in(const Layout& layout, const CpuSet& cpus);  // the CPUs whose core is in the set as a whole

}  // namespace hf::cpu
