// The NUMA nodes that share a request evenly are found by trial: every combination of k nodes, then of k + 1, and for
// the remainder of the division every choice of nodes that give more than the even share. The best combination leaves
// the free CPUs of the nodes most balanced. Neighbours in the order with the same number of free CPUs are
// interchangeable: of combinations that differ only in such nodes, only the first is tried. On a machine that is full,
// or used evenly, this leaves one trial of thousands.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/cpu/pool.h"
#include "core/cpu/take.h"

namespace hf::cpu {
namespace {

constexpr std::uint32_t kMostNodes = 256;       // no machine has more; on such a machine CPUs would be packed
constexpr std::uint32_t kMostTrials = 200'000;  // a few milliseconds; then the best so far is taken

// Some of the nodes, as positions in the order.
struct Chosen {
  std::array<std::uint8_t, kMostNodes> positions;  // only the first `size` are valid
  std::uint32_t size = 0;
};

struct Split {
  Chosen nodes;
  Chosen rest_givers;  // those that give the remainder of the division
  double balance = std::numeric_limits<double>::max();
};

double rounded(double value) { return std::round(value * 1000) / 1000; }

using Amounts = std::array<std::uint32_t, kMostNodes>;  // of free CPUs, by position

class Distribution {
 public:
  Distribution(const Pool& pool, const IndexList& order, std::uint32_t count, std::uint32_t group)
      : count_(count), group_(group), nodes_(order.size()) {
    for (std::uint32_t position = 0; position < nodes_; ++position) {
      free_[position] = pool.free_in_numa(order[position]);
    }
  }

  // The best split over k nodes; null: k nodes cannot do it.
  const Split* best_of(std::uint32_t k) {
    best_ = {};
    each_choice(
        nodes_, k, [this](std::uint32_t position) { return free_[position]; },
        [this](const Chosen& nodes) { try_nodes(nodes); });
    return best_.nodes.size == 0 ? nullptr : &best_;
  }

  [[nodiscard]] bool gave_up() const { return trials_ > kMostTrials; }
  [[nodiscard]] std::uint32_t even_share(std::uint32_t k) const { return count_ / k / group_ * group_; }

 private:
  template <class Free, class Try>
  void each_choice(std::uint32_t from, std::uint32_t k, Free free, Try attempt);
  void try_nodes(const Chosen& nodes);
  void try_rest_givers(const Chosen& nodes, const Chosen& rest_givers, std::uint32_t share, Split& split);
  [[nodiscard]] double lowest_balance(const Chosen& nodes, std::uint32_t share) const;
  [[nodiscard]] double balance_of(const Amounts& left) const;

  std::uint32_t count_;
  std::uint32_t group_;
  std::uint32_t nodes_;
  std::uint32_t trials_ = 0;
  Amounts free_ = {};
  Split best_;
};

// Tries every choice of k of the first `from` positions, in lexicographic order; of those that differ only in
// interchangeable nodes, just the first.
template <class Free, class Try>
void Distribution::each_choice(std::uint32_t from, std::uint32_t k, Free free, Try attempt) {
  Chosen chosen;
  std::uint32_t next = 0;  // the position to decide about
  while (true) {
    while (chosen.size < k && next + (k - chosen.size) <= from) {
      const bool follows = chosen.size > 0 && chosen.positions[chosen.size - 1] + 1U == next;
      if (next == 0 || follows || free(next) != free(next - 1)) {
        chosen.positions[chosen.size++] = std::uint8_t(next);
      }
      ++next;
    }
    if (chosen.size == k) {
      attempt(chosen);
      if (best_.balance == 0 || ++trials_ > kMostTrials) {
        return;
      }
    }
    if (chosen.size == 0) {
      return;
    }
    next = chosen.positions[--chosen.size] + 1U;
  }
}

void Distribution::try_nodes(const Chosen& nodes) {
  const std::uint32_t share = even_share(nodes.size);
  std::uint32_t groups = 0;
  for (std::uint32_t i = 0; i < nodes.size; ++i) {
    const std::uint32_t free = free_[nodes.positions[i]];
    groups += free / group_;
    if (free < share) {
      return;
    }
  }
  if (groups * group_ < count_) {
    return;
  }
  Split split{.nodes = nodes, .rest_givers = {}};
  const std::uint32_t rest = count_ - share * nodes.size;
  if (rest == 0) {
    try_rest_givers(nodes, {}, share, split);
  }
  Chosen able;
  for (std::uint32_t i = 0; i < nodes.size; ++i) {
    if (free_[nodes.positions[i]] - share >= group_) {
      able.positions[able.size++] = nodes.positions[i];
    }
  }
  const double bound = rest == 0 ? 0 : lowest_balance(nodes, share);
  if (bound >= best_.balance) {
    return;
  }
  for (std::uint32_t k = able.size; rest > 0 && k >= 1 && split.balance > bound; --k) {
    each_choice(
        able.size, k, [&](std::uint32_t position) { return free_[able.positions[position]]; },
        [&](const Chosen& chosen) {
          Chosen rest_givers;
          for (std::uint32_t i = 0; i < chosen.size; ++i) {
            rest_givers.positions[rest_givers.size++] = able.positions[chosen.positions[i]];
          }
          try_rest_givers(nodes, rest_givers, share, split);
        });
  }
  if (split.balance < best_.balance) {
    best_ = split;
  }
}

void Distribution::try_rest_givers(const Chosen& nodes, const Chosen& rest_givers, std::uint32_t share, Split& split) {
  Amounts left;
  std::copy_n(free_.begin(), nodes_, left.begin());
  for (std::uint32_t i = 0; i < nodes.size; ++i) {
    left[nodes.positions[i]] -= share;
  }
  std::uint32_t rest = count_ - share * nodes.size;
  // A round in which no node can give a group would repeat forever: kubelet hangs here.
  for (bool any_gave = true; rest > 0 && any_gave;) {
    any_gave = false;
    for (std::uint32_t i = 0; i < rest_givers.size && rest > 0; ++i) {
      if (left[rest_givers.positions[i]] >= group_) {
        left[rest_givers.positions[i]] -= group_;
        rest -= group_;
        any_gave = true;
      }
    }
  }
  const double balance = balance_of(left);
  if (rest == 0 && balance < split.balance) {
    split.balance = balance;
    split.rest_givers = rest_givers;
  }
}

// The balance if the rest is taken from the node that has most, a group at a time: no choice of nodes can do better.
double Distribution::lowest_balance(const Chosen& nodes, std::uint32_t share) const {
  Amounts left;
  std::copy_n(free_.begin(), nodes_, left.begin());
  for (std::uint32_t i = 0; i < nodes.size; ++i) {
    left[nodes.positions[i]] -= share;
  }
  for (std::uint32_t rest = count_ - share * nodes.size; rest > 0; rest -= group_) {
    std::uint32_t most = nodes.positions[0];
    for (std::uint32_t i = 1; i < nodes.size; ++i) {
      most = left[nodes.positions[i]] > left[most] ? nodes.positions[i] : most;
    }
    left[most] -= std::min(left[most], group_);
  }
  return balance_of(left);
}

// The standard deviation, rounded as kubelet rounds: ties are a part of its choice.
double Distribution::balance_of(const Amounts& left) const {
  std::uint32_t sum = 0;
  for (std::uint32_t position = 0; position < nodes_; ++position) {
    sum += left[position];
  }
  const double mean = rounded(double(sum) / nodes_);
  double squares = 0;
  for (std::uint32_t position = 0; position < nodes_; ++position) {
    squares += (left[position] - mean) * (left[position] - mean);
  }
  return rounded(std::sqrt(squares / nodes_));
}

class Applier {
 public:
  Applier(const Layout& layout, const CpuSet& available, std::uint32_t group)
      : layout_(layout), free_(available & layout.cpus), group_(group) {}

  bool take(Index node, std::uint32_t count) {
    CpuSet here;
    for (const Index cpu : layout_.all_numa_nodes.parts(0)[node].cpus) {
      if (free_.contains(cpu)) {
        here.add(cpu);
      }
    }
    const Result<CpuSet> cpus = take_packed(layout_, here, count, {});
    if (cpus) {
      free_ -= *cpus;
      taken_ |= *cpus;
    }
    return cpus.has_value();
  }

  void apply(const Split& split, const IndexList& order, std::uint32_t share, std::uint32_t count) {
    for (std::uint32_t i = 0; i < split.nodes.size; ++i) {
      take(order[split.nodes.positions[i]], share);
    }
    std::uint32_t rest = count - share * split.nodes.size;
    for (bool any_gave = true; rest > 0 && any_gave;) {
      any_gave = false;
      for (std::uint32_t i = 0; i < split.rest_givers.size && rest > 0; ++i) {
        if (take(order[split.rest_givers.positions[i]], group_)) {
          rest -= group_;
          any_gave = true;
        }
      }
    }
  }

  [[nodiscard]] const CpuSet& taken() const { return taken_; }

 private:
  const Layout& layout_;
  CpuSet free_;
  CpuSet taken_;
  std::uint32_t group_;
};

std::uint32_t ceil_of(std::uint32_t whole, std::uint32_t part) { return (whole + part - 1) / part; }

}  // namespace

Result<CpuSet> take_distributed(const Layout& layout, const CpuSet& available, std::uint32_t count, std::uint32_t group,
                                Explanation* explanation) {
  const Pool pool(layout, available);
  IndexList order;
  pool.order_numa_nodes(order);
  if (group == 0 || count % group != 0 || count == 0 || count > pool.count() || order.size() > kMostNodes) {
    return take_packed(layout, available, count, {}, explanation);
  }
  const std::uint32_t groups = ceil_of(std::uint32_t(layout.topology.cpus.size()), group);
  const std::uint32_t per_node = std::max(1U, ceil_of(groups, layout.numa_nodes.size()));
  const std::uint32_t need = ceil_of(count, group);
  Distribution distribution(pool, order, count, group);
  for (std::uint32_t k = ceil_of(need, per_node); k <= std::min(need, order.size()); ++k) {
    const Split* split = distribution.best_of(k);
    if (split == nullptr) {
      continue;
    }
    Applier applier(layout, available, group);
    applier.apply(*split, order, distribution.even_share(k), count);
    if (applier.taken().count() == count) {
      if (explanation != nullptr) {
        explanation->push_back(
            {"as many of each of " + std::to_string(k) + " NUMA nodes as can be" +
                 (distribution.gave_up() ? ", the best of " + std::to_string(kMostTrials) + " trials" : ""),
             applier.taken()});
      }
      return applier.taken();
    }
    break;  // kubelet: "accounting error". Nothing was allocated yet, so packing is still possible.
  }
  return take_packed(layout, available, count, {}, explanation);
}

}  // namespace hf::cpu
