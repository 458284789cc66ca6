#include "core/cpu/topology.h"

#include <algorithm>
#include <functional>
#include <set>

namespace hf::cpu {
namespace {

constexpr std::uint32_t kLocalDistance = 10;   // ACPI's distance of a NUMA node to itself
constexpr std::uint32_t kRemoteDistance = 20;  // Linux's default for others where the firmware has no table

std::unexpected<Error> refuse(const std::string& why) { return fail(std::errc::invalid_argument, "topology: " + why); }

template <class Field>
std::uint32_t distinct(const std::vector<Cpu>& cpus, Field field) {
  std::set<std::uint32_t> seen;
  for (const Cpu& cpu : cpus) {
    seen.insert(field(cpu));
  }
  return std::uint32_t(seen.size());
}

}  // namespace

Result<Topology> make_topology(std::vector<Cpu> cpus) {
  if (cpus.empty()) {
    return refuse("there is no CPU in it");
  }
  std::ranges::sort(cpus, {}, &Cpu::id);
  if (cpus.back().id > kLastCpu) {
    return refuse("CPU " + std::to_string(cpus.back().id) + " is above " + std::to_string(kLastCpu));
  }
  const auto twice = std::ranges::adjacent_find(cpus, {}, &Cpu::id);
  if (twice != cpus.end()) {
    return refuse("CPU " + std::to_string(twice->id) + " is there twice");
  }
  Topology topology;
  topology.counters = count(cpus);
  topology.cpus = std::move(cpus);
  return topology;
}

Counters count(const std::vector<Cpu>& cpus) {
  return {.cpus = std::uint32_t(cpus.size()),
          .cores = distinct(cpus, [](const Cpu& cpu) { return cpu.core; }),
          .sockets = distinct(cpus, [](const Cpu& cpu) { return cpu.socket; }),
          .numa_nodes = distinct(cpus, [](const Cpu& cpu) { return cpu.numa.value; }),
          .caches = distinct(cpus, [](const Cpu& cpu) { return cpu.cache; })};
}

std::uint32_t threads_per_core(const Counters& counters) {
  return counters.cores == 0 ? 0 : counters.cpus / counters.cores;
}

CpuSet all_cpus(const Topology& topology) {
  CpuSet set;
  for (const Cpu& cpu : topology.cpus) {
    set.add(cpu.id);
  }
  return set;
}

CpuSet cpus_of(const Topology& topology, NumaId node) {
  CpuSet set;
  for (const Cpu& cpu : topology.cpus) {
    if (cpu.numa == node) {
      set.add(cpu.id);
    }
  }
  return set;
}

std::vector<NumaId> numa_nodes(const Topology& topology) {
  std::set<NumaId> nodes;
  for (const Cpu& cpu : topology.cpus) {
    nodes.insert(cpu.numa);
  }
  return {nodes.begin(), nodes.end()};
}

std::uint32_t distance(const Topology& topology, NumaId from, NumaId to) {
  const auto found = std::ranges::find_if(topology.distances,
                                          [&](const Distance& entry) { return entry.from == from && entry.to == to; });
  if (found != topology.distances.end()) {
    return found->value;
  }
  return from == to ? kLocalDistance : kRemoteDistance;
}

std::vector<NumaId> numa_nodes_of(const Topology& topology, const CpuSet& cpus) {
  std::set<NumaId> nodes;
  for (const Cpu& one : topology.cpus) {
    if (cpus.contains(one.id)) {
      nodes.insert(one.numa);
    }
  }
  return {nodes.begin(), nodes.end()};
}

CpuSet numbers_of(const std::vector<NumaId>& nodes) {
  CpuSet numbers;
  for (const NumaId node : nodes) {
    numbers.add(node.value);
  }
  return numbers;
}

}  // namespace hf::cpu
