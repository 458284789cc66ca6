#include "support/kubelet_rules.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <vector>

namespace hf::test {
namespace {

using Ids = std::vector<std::uint32_t>;
using Field = std::function<std::uint32_t(const cpu::Cpu&)>;

std::uint32_t core_of(const cpu::Cpu& cpu) { return cpu.core; }
std::uint32_t socket_of(const cpu::Cpu& cpu) { return cpu.socket; }
std::uint32_t numa_of(const cpu::Cpu& cpu) { return cpu.numa.value; }
std::uint32_t cache_of(const cpu::Cpu& cpu) { return cpu.cache; }

std::uint32_t mean(std::uint32_t whole, std::uint32_t parts) { return parts == 0 ? 0 : whole / parts; }

class Accumulator {
 public:
  Accumulator(const cpu::Topology& topology, const cpu::CpuSet& available, std::uint32_t count)
      : topology_(topology), need_(int(count)) {
    for (const cpu::Cpu& cpu : topology.cpus) {
      if (available.contains(cpu.id)) {
        free_.insert(cpu.id);
      }
    }
  }

  [[nodiscard]] std::size_t free_count() const { return free_.size(); }
  [[nodiscard]] int need() const { return need_; }
  [[nodiscard]] const cpu::CpuSet& result() const { return result_; }
  [[nodiscard]] bool numa_first() const { return topology_.counters.sockets >= topology_.counters.numa_nodes; }

  Ids order(const Field& field, const std::function<bool(const cpu::Cpu&)>& among) const {
    std::set<std::uint32_t> ids;
    for (const cpu::Cpu& cpu : topology_.cpus) {
      if (free_.contains(cpu.id) && among(cpu)) {
        ids.insert(field(cpu));
      }
    }
    Ids list(ids.begin(), ids.end());
    std::ranges::sort(list, {}, [&](std::uint32_t id) { return std::pair(free_in(field, id).size(), id); });
    return list;
  }

  [[nodiscard]] Ids free_in(const Field& field, std::uint32_t id) const {
    Ids cpus;
    for (const std::uint32_t cpu : all_in(field, id)) {
      if (free_.contains(cpu)) {
        cpus.push_back(cpu);
      }
    }
    return cpus;
  }

  [[nodiscard]] Ids all_in(const Field& field, std::uint32_t id) const {
    Ids cpus;
    for (const cpu::Cpu& cpu : topology_.cpus) {
      if (field(cpu) == id) {
        cpus.push_back(cpu.id);
      }
    }
    return cpus;
  }

  [[nodiscard]] Ids numa_list() const {
    if (numa_first()) {
      return order(numa_of, [](const cpu::Cpu&) { return true; });
    }
    return nested(socket_list(), socket_of, numa_of);
  }
  [[nodiscard]] Ids socket_list() const {
    if (!numa_first()) {
      return order(socket_of, [](const cpu::Cpu&) { return true; });
    }
    return nested(numa_list(), numa_of, socket_of);
  }
  [[nodiscard]] Ids core_list() const {
    return numa_first() ? nested(socket_list(), socket_of, core_of) : nested(numa_list(), numa_of, core_of);
  }
  [[nodiscard]] Ids cache_list() const { return nested(numa_list(), numa_of, cache_of); }
  [[nodiscard]] Ids nested(const Ids& outer, const Field& outer_field, const Field& inner) const {
    Ids list;
    for (const std::uint32_t id : outer) {
      const Ids part = order(inner, [&](const cpu::Cpu& cpu) { return outer_field(cpu) == id; });
      list.insert(list.end(), part.begin(), part.end());
    }
    return list;
  }

  // A bug of kubelet: it takes all CPUs of the object, whether they were free or not.
  void take(const Ids& cpus) {
    for (const std::uint32_t cpu : cpus) {
      free_.erase(cpu);
      result_.add(cpu);
    }
    need_ -= int(cpus.size());
  }

  // Takes those objects of the list whose CPUs are all free at the beginning.
  void take_whole(const Ids& list, const Field& field, std::optional<std::uint32_t> full_size) {
    Ids whole;
    for (const std::uint32_t id : list) {
      if (free_in(field, id).size() == full_size.value_or(std::uint32_t(all_in(field, id).size()))) {
        whole.push_back(id);
      }
    }
    for (const std::uint32_t id : whole) {
      const Ids cpus = all_in(field, id);
      if (need_ >= int(cpus.size())) {
        take(cpus);
      }
    }
  }

  void take_numa_nodes() { take_whole(numa_list(), numa_of, std::nullopt); }
  void take_sockets() {
    take_whole(socket_list(), socket_of, mean(topology_.counters.cpus, topology_.counters.sockets));
  }
  void take_cores() { take_whole(core_list(), core_of, cpu::threads_per_core(topology_.counters)); }
  void take_by_cache() {
    for (const std::uint32_t cache : cache_list()) {
      if (need_ <= 0) {
        return;
      }
      if (need_ >= int(mean(topology_.counters.cpus, topology_.counters.caches))) {
        take_whole(cache_list(), cache_of, std::nullopt);
      }
      if (need_ > 0) {
        take_part(cache);
      }
    }
  }

  void take_single(const Ids& cpus) {
    for (const std::uint32_t cpu : cpus) {
      if (need_ > 0 && free_.contains(cpu)) {
        take({cpu});
      }
    }
  }

 private:
  void take_part(std::uint32_t cache) {
    const std::uint32_t threads = std::max(1U, cpu::threads_per_core(topology_.counters));
    const std::uint32_t wanted = (std::uint32_t(need_) + threads - 1) / threads;
    std::set<std::uint32_t> cores;
    for (const cpu::Cpu& cpu : topology_.cpus) {
      if (cpu.cache == cache && free_.contains(cpu.id)) {
        cores.insert(cpu.core);
      }
    }
    std::set<std::uint32_t> cpus;
    std::uint32_t used = 0;
    for (const std::uint32_t core : cores) {
      if (used++ < wanted) {
        const Ids part = free_in(core_of, core);
        cpus.insert(part.begin(), part.end());
      }
    }
    if (need_ % 2 != 0 && threads > 1 && int(cpus.size()) > need_) {
      cpus.erase(std::prev(cpus.end()));
    }
    if (int(cpus.size()) == need_) {
      take(Ids(cpus.begin(), cpus.end()));
    }
  }

  const cpu::Topology& topology_;
  std::set<std::uint32_t> free_;
  int need_;
  cpu::CpuSet result_;
};

double rounded(double value) { return std::round(value * 1000) / 1000; }

double deviation(const std::map<std::uint32_t, std::uint32_t>& left) {
  double sum = 0;
  for (const auto& [id, value] : left) {
    sum += value;
  }
  const double middle = rounded(sum / double(left.size()));
  double squares = 0;
  for (const auto& [id, value] : left) {
    squares += (value - middle) * (value - middle);
  }
  return rounded(std::sqrt(squares / double(left.size())));
}

std::vector<Ids> combinations(const Ids& list, std::size_t k) {
  std::vector<Ids> all;
  Ids chosen;
  const std::function<void(std::size_t)> go = [&](std::size_t from) {
    if (chosen.size() == k) {
      all.push_back(chosen);
      return;
    }
    for (std::size_t i = from; i < list.size(); ++i) {
      chosen.push_back(list[i]);
      go(i + 1);
      chosen.pop_back();
    }
  };
  go(0);
  return all;
}

using Counts = std::map<std::uint32_t, std::uint32_t>;  // free CPUs, by NUMA node

// What each of so many NUMA nodes gives of `count` CPUs, in whole groups, and what is left then.
struct Division {
  Division(std::uint32_t wanted, std::size_t nodes, std::uint32_t group_size)
      : count(wanted),
        group(group_size),
        share(count / std::uint32_t(nodes) / group * group),
        rest(count - share * std::uint32_t(nodes)) {}

  std::uint32_t count;
  std::uint32_t group;
  std::uint32_t share;
  std::uint32_t rest;
};

struct Spread {
  Ids nodes;          // each gives the share
  Ids nodes_of_rest;  // these give the rest, group by group
  double deviation = std::numeric_limits<double>::max();
};

// Takes the rest from the nodes by turns. False: kubelet would never end.
template <class HasGroup, class TakeGroup>
bool deal_rest(const Division& division, const Ids& nodes, HasGroup has_group, TakeGroup take_group) {
  std::uint32_t missing = division.rest;
  for (std::uint32_t round = 0; missing > 0; ++round) {
    if (round > division.count) {
      return false;
    }
    for (const std::uint32_t numa : nodes) {
      if (missing > 0 && has_group(numa)) {
        take_group(numa);
        missing -= division.group;
      }
    }
  }
  return true;
}

bool can_give(const Accumulator& all, const Ids& nodes, const Division& division) {
  std::size_t groups = 0;
  bool is_even = true;
  for (const std::uint32_t numa : nodes) {
    const std::size_t free = all.free_in(numa_of, numa).size();
    groups += free / division.group;
    is_even = is_even && free >= division.share;
  }
  return groups * division.group >= division.count && is_even;
}

std::uint32_t sum_of(const Counts& left, const Ids& nodes) {
  std::uint32_t sum = 0;
  for (const std::uint32_t numa : nodes) {
    sum += left.at(numa);
  }
  return sum;
}

// Finds those of the nodes that give the rest with the least deviation. Absent where kubelet would never end.
std::optional<Spread> spread_over(const Ids& nodes, Counts left, const Division& division) {
  Spread best{nodes, {}};
  Ids able;
  for (const std::uint32_t numa : nodes) {
    left[numa] -= division.share;
    if (left[numa] >= division.group) {
      able.push_back(numa);
    }
  }
  if (division.rest == 0) {
    best.deviation = deviation(left);
    return best;
  }
  for (std::size_t size = able.size(); size >= 1; --size) {
    for (const Ids& subset : combinations(able, size)) {
      if (sum_of(left, subset) < division.rest) {
        continue;
      }
      Counts after = left;
      const bool ends = deal_rest(
          division, subset, [&](std::uint32_t numa) { return after[numa] >= division.group; },
          [&](std::uint32_t numa) { after[numa] -= division.group; });
      if (!ends) {
        return std::nullopt;
      }
      if (deviation(after) < best.deviation) {
        best.deviation = deviation(after);
        best.nodes_of_rest = subset;
      }
    }
  }
  return best;
}

// Chooses so many of the NUMA nodes: none where no choice can give the CPUs. Absent where kubelet would never end.
std::optional<Spread> best_spread(const Accumulator& all, std::size_t nodes, const Division& division) {
  const Ids numas = all.numa_list();
  Counts left;
  for (const std::uint32_t numa : numas) {
    left[numa] = std::uint32_t(all.free_in(numa_of, numa).size());
  }
  Spread best;
  for (const Ids& combination : combinations(numas, nodes)) {
    if (best.deviation == 0) {
      break;
    }
    if (!can_give(all, combination, division)) {
      continue;
    }
    const std::optional<Spread> spread = spread_over(combination, left, division);
    if (!spread) {
      return std::nullopt;
    }
    if (spread->deviation < best.deviation) {
      best = *spread;
    }
  }
  return best;
}

std::optional<cpu::CpuSet> take_spread(const cpu::Topology& topology, Accumulator& all, const Spread& spread,
                                       const Division& division) {
  const auto take_from = [&](std::uint32_t numa, std::uint32_t amount) {
    cpu::CpuSet here;
    for (const std::uint32_t cpu : all.free_in(numa_of, numa)) {
      here.add(cpu);
    }
    const std::optional<cpu::CpuSet> cpus = kubelet_packed(topology, here, amount, {});
    if (cpus) {
      all.take(Ids(cpus->begin(), cpus->end()));
    }
  };
  for (const std::uint32_t numa : spread.nodes) {
    take_from(numa, division.share);
  }
  const bool ends = deal_rest(
      division, spread.nodes_of_rest,
      [&](std::uint32_t numa) { return all.free_in(numa_of, numa).size() >= division.group; },
      [&](std::uint32_t numa) { take_from(numa, division.group); });
  return ends && all.need() == 0 ? std::optional(all.result()) : std::nullopt;
}

}  // namespace

std::optional<cpu::CpuSet> kubelet_packed(const cpu::Topology& topology, const cpu::CpuSet& available,
                                          std::uint32_t count, cpu::Packing packing) {
  Accumulator all(topology, available, count);
  if (count > all.free_count()) {
    return std::nullopt;
  }
  const auto is_done = [&] { return all.need() < 1; };
  const std::vector<std::function<void()>> steps = {
      [&] { all.numa_first() ? all.take_numa_nodes() : all.take_sockets(); },
      [&] { all.numa_first() ? all.take_sockets() : all.take_numa_nodes(); },
      [&] {
        if (packing.caches == cpu::CacheUse::preferred) {
          all.take_by_cache();
        }
      },
      [&] {
        if (packing.order == cpu::CpuOrder::packed) {
          all.take_cores();
        }
      },
      [&] {
        Ids cpus;
        const bool is_packed = packing.order == cpu::CpuOrder::packed;
        for (const std::uint32_t id : is_packed ? all.core_list() : all.socket_list()) {
          const Ids part = is_packed ? all.free_in(core_of, id) : all.free_in(socket_of, id);
          cpus.insert(cpus.end(), part.begin(), part.end());
        }
        all.take_single(cpus);
      },
  };
  for (const std::function<void()>& step : steps) {
    if (!is_done()) {
      step();
    }
  }
  return is_done() ? std::optional(all.result()) : std::nullopt;
}

std::optional<cpu::CpuSet> kubelet_distributed(const cpu::Topology& topology, const cpu::CpuSet& available,
                                               std::uint32_t count, std::uint32_t group) {
  if (count % group != 0) {
    return kubelet_packed(topology, available, count, {});
  }
  Accumulator all(topology, available, count);
  if (count == 0) {
    return cpu::CpuSet();
  }
  if (count > all.free_count()) {
    return std::nullopt;
  }
  const auto ceil_of = [](std::size_t a, std::size_t b) { return (a + b - 1) / b; };
  const std::size_t per_numa = ceil_of(ceil_of(topology.cpus.size(), group), numa_nodes(topology).size());
  const std::size_t need = ceil_of(count, group);
  const std::size_t most = std::min(need, all.numa_list().size());
  for (std::size_t nodes = ceil_of(need, per_numa); nodes <= most; ++nodes) {
    const Division division(count, nodes, group);
    const std::optional<Spread> best = best_spread(all, nodes, division);
    if (!best) {
      return std::nullopt;
    }
    if (!best->nodes.empty()) {
      return take_spread(topology, all, *best, division);
    }
  }
  return kubelet_packed(topology, available, count, {});
}

}  // namespace hf::test
