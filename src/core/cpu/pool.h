// Pool: the CPUs that are still free, counted by core, cache, socket and NUMA node, and kubelet's order of each. It is
// meant for the stack: nothing here allocates.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <span>

#include "core/cpu/cpu_set.h"
#include "core/cpu/layout.h"

namespace hf::cpu {

class IndexList {
 public:
  void add(Index index) {
    assert(size_ < items_.size());
    items_[size_++] = index;
  }
  void clear() { size_ = 0; }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] Index* begin() { return items_.data(); }
  [[nodiscard]] Index* end() { return items_.data() + size_; }
  [[nodiscard]] const Index* begin() const { return items_.data(); }
  [[nodiscard]] const Index* end() const { return items_.data() + size_; }
  [[nodiscard]] Index operator[](std::uint32_t position) const { return items_[position]; }

 private:
  std::array<Index, kMostCpus> items_;  // never cleared: only the first size_ items are valid
  std::uint32_t size_ = 0;
};

class Pool {
 public:
  Pool(const Layout& layout, const CpuSet& available);

  [[nodiscard]] const Layout& layout() const { return *layout_; }
  [[nodiscard]] const CpuSet& free() const { return free_; }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] std::uint32_t free_in_core(Index core) const { return in_core_[core]; }
  [[nodiscard]] std::uint32_t free_in_numa(Index numa) const { return in_numa_[numa]; }
  void take(std::uint32_t cpu);

  // Add the objects with a free CPU to the list in kubelet's order: fewest free CPUs first, then by id. Each is added
  // once, though a topology file may put a NUMA node into several sockets.
  void order_numa_nodes(IndexList& list) const;
  void order_sockets(IndexList& list) const;
  void order_caches(IndexList& list) const;
  // Visits every core with a free CPU until `visit` returns false. Cores are sorted one socket or NUMA node at a time:
  // a caller that needs few never sorts all, and CPUs taken by a visit count for the following sockets or nodes.
  template <class Visit>
  void visit_cores(Visit visit) const {
    IndexList outer;
    order_outer(outer);
    for (const Index object : outer) {
      IndexList cores;
      order_cores(object, cores);
      for (const Index core : cores) {
        if (!visit(core)) {
          return;
        }
      }
    }
  }

  // Kubelet compares the number of free CPUs with the mean of the machine; here all CPUs of the object must be free as
  // well, which kubelet does not check.
  [[nodiscard]] bool is_free_core(Index core) const;
  [[nodiscard]] bool is_free_cache(Index cache) const;
  [[nodiscard]] bool is_free_socket(Index socket) const;
  [[nodiscard]] bool is_free_numa(Index numa) const;

 private:
  using Counts = std::array<Index, kMostCpus>;

  void order_outer(IndexList& list) const;  // the sockets, or the NUMA nodes
  void order_cores(Index outer, IndexList& list) const;
  void order(const Nesting& nesting, Index outer, const Counts& counts, IndexList& list) const;
  void order_once(const Nesting& nesting, const IndexList& outer, const Counts& counts, IndexList& list) const;
  [[nodiscard]] bool has_free(std::span<const Index> cpus) const;

  const Layout* layout_;
  CpuSet free_;
  std::uint32_t count_ = 0;
  Counts in_core_;  // never cleared: only as many items as the layout has are valid
  Counts in_cache_;
  Counts in_socket_;
  Counts in_numa_;
};

// True where NUMA nodes consist of sockets; otherwise sockets consist of NUMA nodes.
bool is_numa_first(const Counters& counters);

}  // namespace hf::cpu
