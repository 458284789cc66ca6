// Upkeep: prevents losses, and repairs what rules alone cannot: adds owed devices to systemd's unit, recreates device
// nodes, attaches the exclusive program of a lock. It may block, so the loop that heals never does it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapters/systemd/bus.h"
#include "kernel/cgroup/filters.h"
#include "kernel/files/host.h"
#include "services/guard/inside_view.h"
#include "services/guard/recorder.h"
#include "services/guard/survey.h"

namespace hf::guard {

// leave: a manual heal ignores the policy, and must not undo the locks it asked for.
enum class Locks : std::uint8_t { as_policy_says, leave };

class Upkeep {
 public:
  Upkeep(const kernel::Host& host, kernel::Bpf& bpf) : host_(host), bpf_(bpf) {}

  // Lets everything that is tried only once for a container be tried once more.
  void allow_retries() { tried_.clear(); }
  // Maintains the cgroups and units of all containers, without entering a container.
  std::vector<VisitResult> maintain(const Survey& survey, Locks locks = Locks::as_policy_says);
  // Recreates the nodes that a probe from inside has found missing or stale.
  void recreate_nodes(const InsideView& view, std::vector<VisitResult>& results);

  // The connection to systemd, to poll it: -1 where there is none.
  int descriptor();
  // Has systemd reloaded its units since the last call?
  bool take_reload();

 private:
  void harden(const GuardedContainerPtr& guarded, std::vector<VisitResult>& results);
  void lock(const GuardedContainerPtr& guarded, std::vector<VisitResult>& results);
  systemd::Bus* bus();
  bool is_first_try(const GuardedContainer& guarded, const std::string& what);

  const kernel::Host& host_;
  kernel::Bpf& bpf_;
  std::optional<systemd::Bus> bus_;
  std::chrono::steady_clock::time_point retry_bus_at_;
  std::set<std::string> tried_;
};

}  // namespace hf::guard
