#include <algorithm>

#include "core/cpu/pool.h"
#include "core/cpu/take.h"

namespace hf::cpu {
namespace {

class Taker {
 public:
  Taker(const Layout& layout, const CpuSet& available, std::uint32_t count, Explanation* explanation)
      : layout_(layout), pool_(layout, available), need_(count), explanation_(explanation) {}

  [[nodiscard]] const Pool& pool() const { return pool_; }
  [[nodiscard]] const CpuSet& taken() const { return taken_; }
  [[nodiscard]] bool is_done() const { return need_ == 0; }

  void take_numa_nodes();
  void take_sockets();
  void take_by_cache();
  void take_cores();
  void take_cores_of_unequal_size();
  void take_packed_cpus();
  void take_spread_cpus();

 private:
  void take(std::uint32_t cpu);
  void take_all(std::span<const Index> cpus);
  template <class Is>
  void take_single_cpus(Is is_wanted);
  void take_whole_caches();
  void take_part_of(Index cache);
  void record(const char* because);

  const Layout& layout_;
  Pool pool_;
  CpuSet taken_;
  CpuSet recorded_;
  std::uint32_t need_;
  Explanation* explanation_;
};

void Taker::take(std::uint32_t cpu) {
  pool_.take(cpu);
  taken_.add(cpu);
  --need_;
}

void Taker::take_all(std::span<const Index> cpus) {
  for (const Index cpu : cpus) {
    take(cpu);
  }
}

void Taker::record(const char* because) {
  if (explanation_ != nullptr && taken_ != recorded_) {
    explanation_->push_back({because, taken_ - recorded_});
    recorded_ = taken_;
  }
}

void Taker::take_numa_nodes() {
  IndexList nodes;
  pool_.order_numa_nodes(nodes);
  for (const Index node : nodes) {
    if (pool_.is_free_numa(node) && need_ >= layout_.numa_nodes.cpus_in(node)) {
      take_all(layout_.all_numa_nodes.parts(0)[node].cpus);
    }
  }
  record("whole NUMA nodes");
}

void Taker::take_sockets() {
  IndexList sockets;
  pool_.order_sockets(sockets);
  for (const Index socket : sockets) {
    if (pool_.is_free_socket(socket) && need_ >= layout_.sockets.cpus_in(socket)) {
      take_all(layout_.all_sockets.parts(0)[socket].cpus);
    }
  }
  record("whole sockets");
}

void Taker::take_by_cache() {
  const Counters& counters = layout_.topology.counters;
  const std::uint32_t cpus_per_cache = counters.caches == 0 ? 0 : counters.cpus / counters.caches;
  IndexList caches;
  pool_.order_caches(caches);
  for (const Index cache : caches) {
    if (is_done()) {
      return;
    }
    if (need_ >= cpus_per_cache) {
      take_whole_caches();
    }
    if (!is_done()) {
      take_part_of(cache);
    }
  }
}

void Taker::take_whole_caches() {
  IndexList caches;
  pool_.order_caches(caches);
  for (const Index cache : caches) {
    if (pool_.is_free_cache(cache) && need_ >= layout_.caches.cpus_in(cache)) {
      for (const Nesting::Part& core : layout_.cores_in_caches.parts(cache)) {
        take_all(core.cpus);
      }
    }
  }
  record("whole last-level caches");
}

// Takes everything that is still needed from the lowest cores of one cache that have a free CPU, or nothing.
void Taker::take_part_of(Index cache) {
  const std::uint32_t threads = std::max(1U, threads_per_core(layout_.topology.counters));
  std::uint32_t cores_left = (need_ + threads - 1) / threads;
  CpuSet cpus;
  std::uint32_t highest = 0;
  for (const Nesting::Part& core : layout_.cores_in_caches.parts(cache)) {
    if (cores_left == 0) {
      break;
    }
    bool has_free = false;
    for (const Index cpu : core.cpus) {
      has_free = has_free || pool_.free().contains(cpu);
    }
    if (!has_free) {
      continue;
    }
    --cores_left;
    for (const Index cpu : layout_.threads_of_cores.parts(core.inner)[0].cpus) {
      if (pool_.free().contains(cpu)) {
        cpus.add(cpu);
        highest = std::max(highest, std::uint32_t(cpu));
      }
    }
  }
  if (need_ % 2 != 0 && threads > 1 && cpus.count() > need_) {
    cpus.remove(highest);
  }
  if (cpus.count() != need_) {
    return;
  }
  for (const std::uint32_t cpu : cpus) {
    take(cpu);
  }
  record("cores of one last-level cache");
}

void Taker::take_cores() {
  const std::uint32_t threads = std::max(1U, threads_per_core(layout_.topology.counters));
  if (need_ >= threads) {
    pool_.visit_cores([&](Index core) {
      if (pool_.is_free_core(core) && need_ >= layout_.cores.cpus_in(core)) {
        take_all(layout_.threads_of_cores.parts(core)[0].cpus);
      }
      return need_ >= threads;
    });
  }
  record("whole cores");
}

template <class Is>
void Taker::take_single_cpus(Is is_wanted) {
  if (is_done()) {
    return;
  }
  pool_.visit_cores([&](Index core) {
    if (!is_wanted(core)) {
      return true;
    }
    for (const Index cpu : layout_.threads_of_cores.parts(core)[0].cpus) {
      if (!is_done() && pool_.free().contains(cpu)) {
        take(cpu);
      }
    }
    return !is_done();
  });
}

// The largest cores come first, so that a container has as few as possible. The last CPU goes to a core that is split
// already.
void Taker::take_cores_of_unequal_size() {
  for (std::uint32_t size = layout_.most_threads; size > 0 && need_ > 1; --size) {
    pool_.visit_cores([&](Index core) {
      const bool is_whole = pool_.free_in_core(core) == size && layout_.cores.cpus_in(core) == size;
      if (is_whole && need_ >= size) {
        take_all(layout_.threads_of_cores.parts(core)[0].cpus);
      }
      return need_ >= size && need_ > 1;
    });
  }
  record("whole cores");
  take_single_cpus([&](Index core) { return pool_.free_in_core(core) < layout_.cores.cpus_in(core); });
  record("single CPUs, of cores that are split already");
}

void Taker::take_packed_cpus() {
  take_single_cpus([](Index) { return true; });
  record("single CPUs, of the cores that are used most already");
}

void Taker::take_spread_cpus() {
  IndexList sockets;
  pool_.order_sockets(sockets);
  for (const Index socket : sockets) {
    for (const Index cpu : layout_.all_sockets.parts(0)[socket].cpus) {
      if (!is_done() && pool_.free().contains(cpu)) {
        take(cpu);
      }
    }
  }
  record("single CPUs, a core each as long as there are cores");
}

}  // namespace

Result<CpuSet> take_packed(const Layout& layout, const CpuSet& available, std::uint32_t count, Packing packing,
                           Explanation* explanation) {
  Taker taker(layout, available, count, explanation);
  if (count > taker.pool().count()) {
    return fail(Reason::unavailable, "not enough cpus available to satisfy request: requested=" +
                                         std::to_string(count) + ", available=" + std::to_string(taker.pool().count()));
  }
  if (is_numa_first(layout.topology.counters)) {
    taker.take_numa_nodes();
    taker.take_sockets();
  } else {
    taker.take_sockets();
    taker.take_numa_nodes();
  }
  if (packing.caches == CacheUse::preferred) {
    taker.take_by_cache();
  }
  if (packing.order == CpuOrder::spread) {
    taker.take_spread_cpus();
  } else {
    const bool is_like_kubelet = layout.has_equal_cores || packing.unequal_cores == UnequalCores::as_kubelet;
    is_like_kubelet ? taker.take_cores() : taker.take_cores_of_unequal_size();
    taker.take_packed_cpus();
  }
  if (!taker.is_done()) {
    return fail(Reason::unavailable, "failed to allocate cpus");
  }
  return taker.taken();
}

}  // namespace hf::cpu
