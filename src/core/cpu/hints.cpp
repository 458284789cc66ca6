#include "core/cpu/hints.h"

#include <algorithm>
#include <bit>
#include <set>

namespace hf::cpu {
namespace {

using Mask = std::uint32_t;  // bit i: the i-th NUMA node

// All masks but the empty one: fewest nodes first, then in lexicographic order of the node lists.
std::vector<Mask> masks_of(std::size_t nodes) {
  std::vector<Mask> masks;
  for (Mask mask = 1; mask < Mask(1) << nodes; ++mask) {
    masks.push_back(mask);
  }
  std::ranges::sort(masks, [](Mask a, Mask b) {
    if (std::popcount(a) != std::popcount(b)) {
      return std::popcount(a) < std::popcount(b);
    }
    const Mask lowest_difference = (a ^ b) & -(a ^ b);
    return (a & lowest_difference) != 0;
  });
  return masks;
}

std::vector<NumaId> nodes_of(const std::vector<NumaId>& all, Mask mask) {
  std::vector<NumaId> nodes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((mask >> i & 1) != 0) {
      nodes.push_back(all[i]);
    }
  }
  return nodes;
}

CpuSet cpus_of(const std::vector<CpuSet>& by_node, Mask mask) {
  CpuSet cpus;
  for (std::size_t i = 0; i < by_node.size(); ++i) {
    if ((mask >> i & 1) != 0) {
      cpus |= by_node[i];
    }
  }
  return cpus;
}

bool fits_sockets(const Topology& topology, const CpuSet& cpus, std::uint32_t least_nodes) {
  const Counters& counters = topology.counters;
  const std::uint32_t per_socket = counters.sockets == 0 ? 0 : counters.numa_nodes / counters.sockets;
  if (per_socket == 0) {
    return false;
  }
  std::set<std::uint32_t> sockets;
  for (const Cpu& cpu : topology.cpus) {
    if (cpus.contains(cpu.id)) {
      sockets.insert(cpu.socket);
    }
  }
  return sockets.size() == (least_nodes + per_socket - 1) / per_socket;
}

Result<Hints> hints_of(const Policy& policy, const CpuSet& available, const CpuSet& reusable, std::uint32_t count) {
  const Topology& topology = policy.layout->topology;
  const std::vector<NumaId> nodes = numa_nodes(topology);
  if (nodes.size() > kMostHintedNodes) {
    return fail(std::errc::not_supported, "topology hints: " + std::to_string(nodes.size()) +
                                              " NUMA nodes are more than " + std::to_string(kMostHintedNodes));
  }
  std::vector<CpuSet> by_node;
  by_node.reserve(nodes.size());
  for (const NumaId node : nodes) {
    by_node.push_back(cpu::cpus_of(topology, node));
  }
  auto least = std::uint32_t(nodes.size());
  std::vector<Hint> hints;
  for (const Mask mask : masks_of(nodes.size())) {
    const CpuSet cpus = cpus_of(by_node, mask);
    if (cpus.count() >= count) {
      least = std::min(least, std::uint32_t(std::popcount(mask)));
    }
    if (cpus.contains(reusable) && ((available | reusable) & cpus).count() >= count) {
      hints.push_back({.nodes = nodes_of(nodes, mask)});
    }
  }
  for (Hint& hint : hints) {
    CpuSet cpus;
    for (const NumaId node : hint.nodes) {
      cpus |= cpu::cpus_of(topology, node);
    }
    hint.is_preferred = hint.nodes.size() == least || (policy.options.by_socket && fits_sockets(topology, cpus, least));
  }
  return hints;
}

bool is_ignored(const Policy& policy, const PodRequest& pod) {
  return pod.cpu_budget && policy.budgets == PodBudgets::ignored;
}

}  // namespace

Result<Hints> hints_for(const Policy& policy, const State& state, const PodRequest& pod, std::string_view container) {
  const ContainerRequest* request = find_container(pod, container);
  const std::uint32_t count = request == nullptr || is_ignored(policy, pod) ? 0 : exclusive_cpu_count(pod, *request);
  if (count == 0) {
    return Hints();
  }
  if (const CpuSet* own = find_entry(state, {pod.uid, request->name})) {
    return own->count() == count ? hints_of(policy, *own, {}, count) : Result<Hints>(std::vector<Hint>());
  }
  return hints_of(policy, assignable(policy, state), reusable(state, pod), count);
}

Result<Hints> hints_for(const Policy& policy, const State& state, const PodRequest& pod) {
  const std::uint32_t count = is_ignored(policy, pod) ? 0 : exclusive_cpu_count(pod);
  if (count == 0) {
    return Hints();
  }
  CpuSet owned;
  for (const ContainerRequest& container : pod.containers) {
    const std::uint32_t own_count = exclusive_cpu_count(pod, container);
    const CpuSet* own = own_count == 0 ? nullptr : find_entry(state, {pod.uid, container.name});
    if (own != nullptr && own->count() != own_count) {
      return std::vector<Hint>();
    }
    owned |= own == nullptr ? CpuSet() : *own;
  }
  if (owned.count() == count) {
    return hints_of(policy, owned, {}, count);
  }
  return hints_of(policy, assignable(policy, state), reusable(state, pod), count);
}

}  // namespace hf::cpu
