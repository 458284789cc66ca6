// InsideView: the owed device nodes of a guarded container, probed from inside; and the schedule of these probes.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/container/entitlement/node_state.h"
#include "core/device/inventory.h"
#include "kernel/cgroup/filters.h"
#include "kernel/container/node_prober.h"
#include "kernel/files/host.h"
#include "services/guard/guarded_container.h"

namespace hf::guard {

struct InsideView {
  GuardedContainerPtr guarded;
  std::vector<container::NodeState> nodes;
  bool has_timed_out = false;

  // Nodes that the policy lets us recreate, where recreating them helps.
  [[nodiscard]] std::vector<container::NodeState> to_recreate() const;
};

struct ProbeTools {
  const kernel::Host& host;
  kernel::Filters& filters;
  kernel::NodeProber& prober;
};
InsideView probe_inside(const ProbeTools& tools, const GuardedContainerPtr& guarded, const device::Inventory& inventory,
                        std::chrono::milliseconds limit = kernel::kProbeTimeout);

// Which containers are due for a probe. One that hangs is probed less and less often, and delays only itself.
class ProbeSchedule {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  // New containers are due at once, those that ended are forgotten.
  void follow(const std::vector<GuardedContainerPtr>& guarded_containers);
  void make_due(const GuardedContainer& guarded);
  // Makes every container that was probed due again, because something may have changed. Frequent calls are ignored.
  void make_all_due(std::uint64_t now);
  // The same, now and then, though nothing is known to have changed: the kernel reports no removal of a node.
  void start_round_if_due(std::uint64_t now);
  [[nodiscard]] std::uint64_t next_round() const;  // kNever: there is no container

  // The container that has been due longest; null where none is due.
  [[nodiscard]] GuardedContainerPtr find_due(std::uint64_t now) const;
  // Records a probe and the CPU time that it took. True: the container has other failures than at its last probe.
  bool has_probed(const InsideView& view, std::uint64_t now, std::uint64_t cpu_ns);
  // The time when the next container is due, or kNever.
  [[nodiscard]] std::uint64_t next_due() const;

 private:
  struct Entry {
    GuardedContainerPtr guarded;
    std::uint64_t due_at = kNever;
    std::uint64_t pause = 0;
    std::vector<container::AccessFailure> failures = {};  // of each node that has one
  };
  void set_due(Entry& entry, std::uint64_t at);
  void start_round(std::uint64_t now);

  std::map<ContainerKey, Entry> entries_;
  std::set<std::pair<std::uint64_t, const Entry*>> queue_;  // those whose due_at is not kNever
  std::uint64_t round_at_ = 0;                              // when all of them were made due
  std::uint64_t cost_ = 0;                                  // CPU time of the probes since then
};

}  // namespace hf::guard
