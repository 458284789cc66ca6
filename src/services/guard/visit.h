// Visit: observes one cgroup of a container, compares it with what the container is owed, repairs it, and observes it
// again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/guard/drift.h"
#include "kernel/cgroup/filters.h"
#include "services/guard/guarded_container.h"
#include "services/guard/shielding.h"

namespace hf::guard {

struct Visit {
  container::Drift drift;  // as it was found
  container::Drift left;   // after the repair
  std::vector<container::Step> steps;
  std::vector<std::string> refused;  // why something could not be repaired
  container::Effective before;       // the rules, without the shield
  container::Effective after;
  ShieldState shield;
  std::uint64_t healed_at = 0;  // nanoseconds of CLOCK_MONOTONIC; 0: nothing was repaired
  int attempts = 1;
};

struct Site {
  const GuardedContainer& guarded;
  const kernel::CgroupsOfProcess& cgroups;
  const kernel::Cgroup* parent = nullptr;  // of the container's outermost v2 cgroup, where the shield is
};

enum class VisitMode : std::uint8_t { observe_only, may_heal };

using Clock = std::function<std::uint64_t()>;  // nanoseconds of CLOCK_MONOTONIC

// Starts again when another writer was faster. `shielding`: absent for a visit that leaves the shield as it is.
Result<Visit> visit(kernel::Filters& filters, Shielding* shielding, const Site& site, VisitMode mode,
                    const Clock& clock);

}  // namespace hf::guard
