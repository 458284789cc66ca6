#include "core/cpu/layout.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace hf::cpu {
namespace {

template <class Field>
Level level_of(const Topology& topology, Field field) {
  std::vector<std::uint32_t> ids;
  ids.reserve(topology.cpus.size());
  for (const Cpu& cpu : topology.cpus) {
    ids.push_back(field(cpu));
  }
  return Level(ids);
}

Level machine_of(const Topology& topology) {
  return level_of(topology, [](const Cpu&) { return 0U; });
}

// The id of each core is its lowest CPU.
Level real_cores_of(const Topology& topology) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, NumaId>, std::uint32_t> lowest;
  return level_of(topology, [&](const Cpu& cpu) {
    return lowest.try_emplace({cpu.core, cpu.socket, cpu.numa}, cpu.id).first->second;
  });
}

std::vector<Index> rows_by_cpu(const Topology& topology) {
  std::vector<Index> rows(topology.cpus.empty() ? 0 : topology.cpus.back().id + 1);
  for (std::size_t row = 0; row < topology.cpus.size(); ++row) {
    rows[topology.cpus[row].id] = Index(row);
  }
  return rows;
}

}  // namespace

Level::Level(std::span<const std::uint32_t> id_of_row) : ids_(id_of_row.begin(), id_of_row.end()) {
  std::ranges::sort(ids_);
  ids_.erase(std::ranges::unique(ids_).begin(), ids_.end());
  counts_.resize(ids_.size());
  of_row_.reserve(id_of_row.size());
  for (const std::uint32_t id : id_of_row) {
    of_row_.push_back(Index(std::ranges::lower_bound(ids_, id) - ids_.begin()));
    ++counts_[of_row_.back()];
  }
}

Nesting::Nesting(const Topology& topology, const Level& outer, const Level& inner) {
  std::map<std::pair<Index, Index>, std::vector<Index>> cpus_of;
  for (std::size_t row = 0; row < topology.cpus.size(); ++row) {
    cpus_of[{outer.of_row(row), inner.of_row(row)}].push_back(Index(topology.cpus[row].id));
  }
  cpus_.reserve(topology.cpus.size());
  for (const auto& [outer_inner, cpus] : cpus_of) {
    first_.resize(std::size_t(outer_inner.first) + 1, std::uint32_t(parts_.size()));
    const std::size_t begin = cpus_.size();
    cpus_.insert(cpus_.end(), cpus.begin(), cpus.end());
    parts_.push_back({outer_inner.second, std::span(cpus_).subspan(begin, cpus.size())});
  }
  first_.resize(std::size_t(outer.size()) + 1, std::uint32_t(parts_.size()));
}

Layout::Layout(Topology machine)
    : topology(std::move(machine)),
      cpus(all_cpus(topology)),
      row_of(rows_by_cpu(topology)),
      cores(level_of(topology, [](const Cpu& cpu) { return cpu.core; })),
      real_cores(real_cores_of(topology)),
      caches(level_of(topology, [](const Cpu& cpu) { return cpu.cache; })),
      sockets(level_of(topology, [](const Cpu& cpu) { return cpu.socket; })),
      numa_nodes(level_of(topology, [](const Cpu& cpu) { return cpu.numa.value; })),
      most_threads(cores.most_cpus()),
      has_equal_cores(most_threads * cores.size() == topology.cpus.size()),
      all_numa_nodes(topology, machine_of(topology), numa_nodes),
      all_sockets(topology, machine_of(topology), sockets),
      sockets_in_numa(topology, numa_nodes, sockets),
      numa_in_sockets(topology, sockets, numa_nodes),
      cores_in_sockets(topology, sockets, cores),
      cores_in_numa(topology, numa_nodes, cores),
      caches_in_numa(topology, numa_nodes, caches),
      cores_in_caches(topology, caches, cores),
      threads_of_cores(topology, cores, cores),
      threads_of_real_cores(topology, real_cores, real_cores) {}

CpuSet whole_cores_in(const Layout& layout, const CpuSet& cpus) {
  CpuSet whole;
  for (std::uint32_t core = 0; core < layout.real_cores.size(); ++core) {
    const std::span<const Index> threads = layout.threads_of_real_cores.parts(Index(core))[0].cpus;
    if (std::ranges::all_of(threads, [&](Index cpu) { return cpus.contains(cpu); })) {
      for (const Index cpu : threads) {
        whole.add(cpu);
      }
    }
  }
  return whole;
}

}  // namespace hf::cpu
