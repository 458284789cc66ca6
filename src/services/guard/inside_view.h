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
#include "kernel/cgroup/bpf_api.h"
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
  kernel::Bpf& bpf;
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
  // Makes every container that was probed due again.
  void make_all_due();
  void make_due(const GuardedContainer& guarded);

  // The container that has been due longest; null where none is due.
  [[nodiscard]] GuardedContainerPtr find_due(std::uint64_t now) const;
  void has_probed(const InsideView& view, std::uint64_t now);
  // The time when the next container is due, or kNever.
  [[nodiscard]] std::uint64_t next_due() const;

 private:
  struct Entry {
    GuardedContainerPtr guarded;
    std::uint64_t due_at = kNever;
    std::uint64_t pause = 0;
  };
  void set_due(Entry& entry, std::uint64_t at);

  std::map<ContainerKey, Entry> entries_;
  std::set<std::pair<std::uint64_t, const Entry*>> queue_;  // those whose due_at is not kNever
};

}  // namespace hf::guard
