#include "core/cpu/pool.h"

#include <algorithm>

namespace hf::cpu {
namespace {

std::uint32_t mean(std::uint32_t whole, std::uint32_t parts) { return parts == 0 ? 0 : whole / parts; }

}  // namespace

bool is_numa_first(const Counters& counters) { return counters.sockets >= counters.numa_nodes; }

Pool::Pool(const Layout& layout, const CpuSet& available) : layout_(&layout), free_(available & layout.cpus) {
  std::fill_n(in_core_.begin(), layout.cores.size(), Index(0));
  std::fill_n(in_cache_.begin(), layout.caches.size(), Index(0));
  std::fill_n(in_socket_.begin(), layout.sockets.size(), Index(0));
  std::fill_n(in_numa_.begin(), layout.numa_nodes.size(), Index(0));
  for (const std::uint32_t cpu : free_) {
    const Index row = layout.row_of[cpu];
    ++in_core_[layout.cores.of_row(row)];
    ++in_cache_[layout.caches.of_row(row)];
    ++in_socket_[layout.sockets.of_row(row)];
    ++in_numa_[layout.numa_nodes.of_row(row)];
    ++count_;
  }
}

void Pool::take(std::uint32_t cpu) {
  const Index row = layout_->row_of[cpu];
  --in_core_[layout_->cores.of_row(row)];
  --in_cache_[layout_->caches.of_row(row)];
  --in_socket_[layout_->sockets.of_row(row)];
  --in_numa_[layout_->numa_nodes.of_row(row)];
  --count_;
  free_.remove(cpu);
}

void Pool::order_numa_nodes(IndexList& list) const {
  if (is_numa_first(layout_->topology.counters)) {
    order(layout_->all_numa_nodes, 0, in_numa_, list);
    return;
  }
  IndexList sockets;
  order_sockets(sockets);
  order_once(layout_->numa_in_sockets, sockets, in_numa_, list);
}

void Pool::order_sockets(IndexList& list) const {
  if (!is_numa_first(layout_->topology.counters)) {
    order(layout_->all_sockets, 0, in_socket_, list);
    return;
  }
  IndexList nodes;
  order_numa_nodes(nodes);
  order_once(layout_->sockets_in_numa, nodes, in_socket_, list);
}

void Pool::order_caches(IndexList& list) const {
  IndexList nodes;
  order_numa_nodes(nodes);
  order_once(layout_->caches_in_numa, nodes, in_cache_, list);
}

void Pool::order_outer(IndexList& list) const {
  if (is_numa_first(layout_->topology.counters)) {
    order_sockets(list);
  } else {
    order_numa_nodes(list);
  }
}

void Pool::order_cores(Index outer, IndexList& list) const {
  const bool are_sockets = is_numa_first(layout_->topology.counters);
  order(are_sockets ? layout_->cores_in_sockets : layout_->cores_in_numa, outer, in_core_, list);
}

bool Pool::is_free_core(Index core) const {
  return in_core_[core] == threads_per_core(layout_->topology.counters) &&
         in_core_[core] == layout_->cores.cpus_in(core);
}

bool Pool::is_free_cache(Index cache) const { return in_cache_[cache] == layout_->caches.cpus_in(cache); }

bool Pool::is_free_socket(Index socket) const {
  const Counters& counters = layout_->topology.counters;
  return in_socket_[socket] == mean(counters.cpus, counters.sockets) &&
         in_socket_[socket] == layout_->sockets.cpus_in(socket);
}

bool Pool::is_free_numa(Index numa) const { return in_numa_[numa] == layout_->numa_nodes.cpus_in(numa); }

void Pool::order(const Nesting& nesting, Index outer, const Counts& counts, IndexList& list) const {
  const std::uint32_t before = list.size();
  for (const Nesting::Part& part : nesting.parts(outer)) {
    if (counts[part.inner] > 0 && has_free(part.cpus)) {
      list.add(part.inner);
    }
  }
  std::sort(list.begin() + before, list.end(),
            [&](Index a, Index b) { return counts[a] != counts[b] ? counts[a] < counts[b] : a < b; });
}

void Pool::order_once(const Nesting& nesting, const IndexList& outer, const Counts& counts, IndexList& list) const {
  CpuSet seen;  // of indices, which have the same range as CPUs
  IndexList part;
  for (const Index object : outer) {
    part.clear();
    order(nesting, object, counts, part);
    for (const Index inner : part) {
      if (!seen.contains(inner)) {
        seen.add(inner);
        list.add(inner);
      }
    }
  }
}

bool Pool::has_free(std::span<const Index> cpus) const {
  return std::ranges::any_of(cpus, [&](Index cpu) { return free_.contains(cpu); });
}

}  // namespace hf::cpu
