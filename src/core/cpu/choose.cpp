// Chooses CPUs from the hint's NUMA nodes first, or from those near the devices, then from the rest; within each of
// these tiers as kubelet does. With full-pcpus-only, kubelet's choice is kept if it splits no core. Otherwise the
// choice is repeated with whole cores only, and on machines whose cores have different numbers of threads the cores are
// picked one by one so that they add up.
#include <algorithm>

#include "core/cpu/policy.h"
#include "core/cpu/pool.h"

namespace hf::cpu {
namespace {

struct Tier {
  CpuSet cpus;
  std::string because;
};

std::string list_of(const std::vector<NumaId>& nodes) {
  std::string text;
  for (const NumaId node : nodes) {
    text += (text.empty() ? "" : ",") + std::to_string(node.value);
  }
  return text;
}

CpuSet cpus_of_hint(const Policy& policy, const std::vector<NumaId>& hint) {
  CpuSet cpus;
  for (const Cpu& cpu : policy.layout->topology.cpus) {
    if (std::ranges::find(hint, cpu.numa) != hint.end()) {
      cpus.add(cpu.id);
    }
  }
  if (!policy.options.by_socket) {
    return cpus;
  }
  CpuSet sockets;
  for (const std::uint32_t cpu : cpus) {
    const Index socket = policy.layout->sockets.of_row(policy.layout->row_of[cpu]);
    for (const Index member : policy.layout->all_sockets.parts(0)[socket].cpus) {
      sockets.add(member);
    }
  }
  return sockets;
}

// The NUMA nodes of the machine by distance from the devices: first their own nodes, then the nearest ones, and so on.
std::vector<Tier> rings_around(const Topology& topology, const std::vector<NumaId>& device_nodes) {
  std::map<std::uint32_t, std::vector<NumaId>> by_distance;
  for (const NumaId node : numa_nodes(topology)) {
    std::uint32_t nearest = ~0U;
    for (const NumaId device : device_nodes) {
      nearest = node == device ? 0 : std::min(nearest, distance(topology, device, node));
      if (nearest == 0) {
        break;
      }
    }
    by_distance[nearest].push_back(node);
  }
  std::vector<Tier> rings;
  for (const auto& [far, nodes] : by_distance) {
    Tier ring{.cpus = {},
              .because = far == 0 ? "NUMA node " + list_of(nodes) + ", where the devices sit"
                                  : "NUMA node " + list_of(nodes) + ", at distance " + std::to_string(far)};
    for (const NumaId node : nodes) {
      ring.cpus |= cpus_of(topology, node);
    }
    rings.push_back(std::move(ring));
  }
  return rings;
}

std::vector<Tier> tiers_of(const Policy& policy, const NumaPreference& preference) {
  std::vector<Tier> tiers;
  const CpuSet hinted = preference.hint ? cpus_of_hint(policy, *preference.hint) : CpuSet();
  std::vector<Tier> rings;
  if (policy.options.near_devices && !preference.device_nodes.empty()) {
    rings = rings_around(policy.layout->topology, preference.device_nodes);
  }
  if (preference.hint) {
    const std::string because = "the hint, NUMA node " + list_of(*preference.hint);
    for (const Tier& ring : rings) {
      tiers.push_back({ring.cpus & hinted, because + "; " + ring.because});
    }
    if (rings.empty()) {
      tiers.push_back({hinted, because});
    }
  }
  for (Tier& ring : rings) {
    tiers.push_back(std::move(ring));
  }
  tiers.push_back({policy.layout->cpus, tiers.empty() ? "" : "the rest of the machine"});
  return tiers;
}

Result<CpuSet> take_tiers(const Policy& policy, const std::vector<Tier>& tiers, const CpuSet& allocatable,
                          std::uint32_t count, Explanation* explanation) {
  CpuSet taken;
  std::uint32_t need = count;
  for (const Tier& tier : tiers) {
    const bool is_last = &tier == &tiers.back();
    const CpuSet free = (allocatable & tier.cpus) - taken;
    const std::uint32_t share = is_last ? need : std::min(need, free.count());
    const std::size_t before = explanation == nullptr ? 0 : explanation->size();
    const CpuSet cpus = TRY(take(policy, free, share, explanation));
    for (std::size_t i = before; explanation != nullptr && i < explanation->size(); ++i) {
      (*explanation)[i].because.insert(0, tier.because.empty() ? "" : tier.because + "; ");
    }
    taken |= cpus;
    need -= share;
  }
  return taken;
}

// reach[i][sum]: whether some of the cores from i on add up to `sum` CPUs.
std::vector<std::vector<bool>> reachable_sums(const std::vector<std::uint32_t>& sizes, std::uint32_t count) {
  std::vector<std::vector<bool>> reach(sizes.size() + 1, std::vector<bool>(count + 1));
  reach.back()[0] = true;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    for (std::uint32_t sum = 0; sum <= count; ++sum) {
      reach[i][sum] = reach[i + 1][sum] || (sum >= sizes[i] && reach[i + 1][sum - sizes[i]]);
    }
  }
  return reach;
}

// Cores in the order of the tiers and, within a tier, in kubelet's order.
std::vector<Index> ordered_cores(const Policy& policy, const std::vector<Tier>& tiers, const CpuSet& whole) {
  std::vector<Index> ordered;
  CpuSet seen;
  for (const Tier& tier : tiers) {
    const Pool pool(*policy.layout, (whole & tier.cpus) - seen);
    pool.visit_cores([&](Index core) {
      for (const Index cpu : policy.layout->threads_of_cores.parts(core)[0].cpus) {
        const Index real = policy.layout->real_cores.of_row(policy.layout->row_of[cpu]);
        if (pool.free().contains(cpu) && std::ranges::find(ordered, real) == ordered.end()) {
          ordered.push_back(real);
        }
      }
      return true;
    });
    seen |= tier.cpus;
  }
  return ordered;
}

Result<CpuSet> pick_cores(const Policy& policy, const std::vector<Tier>& tiers, const CpuSet& whole,
                          std::uint32_t count) {
  const std::vector<Index> cores = ordered_cores(policy, tiers, whole);
  std::vector<std::uint32_t> sizes;
  sizes.reserve(cores.size());
  for (const Index core : cores) {
    sizes.push_back(policy.layout->real_cores.cpus_in(core));
  }
  const std::vector<std::vector<bool>> reach = reachable_sums(sizes, count);
  if (!reach[0][count]) {
    return fail(Reason::unavailable,
                "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = " +
                    std::to_string(whole.count()) + ", requested CPUs = " + std::to_string(count) +
                    ", CPUs per core = " + std::to_string(threads_per_core(policy.layout->topology.counters)));
  }
  CpuSet taken;
  std::uint32_t need = count;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    if (sizes[i] <= need && reach[i + 1][need - sizes[i]]) {
      need -= sizes[i];
      for (const Index cpu : policy.layout->threads_of_real_cores.parts(cores[i])[0].cpus) {
        taken.add(cpu);
      }
    }
  }
  return taken;
}

}  // namespace

Result<CpuSet> take(const Policy& policy, const CpuSet& free, std::uint32_t count, Explanation* explanation) {
  if (policy.options.across_numa) {
    const std::uint32_t threads = std::max(1U, threads_per_core(policy.layout->topology.counters));
    return take_distributed(*policy.layout, free, count, policy.options.full_cores ? threads : 1, explanation);
  }
  return take_packed(*policy.layout, free, count,
                     {.order = policy.options.across_cores ? CpuOrder::spread : CpuOrder::packed,
                      .caches = policy.options.by_cache ? CacheUse::preferred : CacheUse::ignored,
                      .unequal_cores = policy.options.full_cores ? UnequalCores::as_kubelet  // choose() checks it
                                                                 : UnequalCores::largest_first},
                     explanation);
}

Result<CpuSet> choose(const Policy& policy, const CpuSet& allocatable, std::uint32_t count,
                      const NumaPreference& preference, Explanation* explanation) {
  const std::vector<Tier> tiers = tiers_of(policy, preference);
  const CpuSet free = allocatable & policy.layout->cpus;
  Result<CpuSet> chosen = take_tiers(policy, tiers, free, count, explanation);
  if (!chosen || !policy.options.full_cores || whole_cores_in(*policy.layout, *chosen) == *chosen) {
    return chosen;
  }
  if (explanation != nullptr) {
    explanation->clear();
  }
  const CpuSet whole = whole_cores_in(*policy.layout, free);
  chosen = take_tiers(policy, tiers, whole, count, explanation);
  if (chosen && whole_cores_in(*policy.layout, *chosen) == *chosen) {
    return chosen;
  }
  chosen = pick_cores(policy, tiers, whole, count);
  if (explanation != nullptr) {
    explanation->clear();
    if (chosen) {
      explanation->push_back({"whole cores that add up", *chosen});
    }
  }
  return chosen;
}

}  // namespace hf::cpu
