// Shielding: keeps the shield's entries for a container's cgroup in line with its owed devices and the gates above it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/container/gate/gate.h"
#include "core/container/guard/policy.h"
#include "kernel/cgroup/shield.h"
#include "services/guard/guarded_container.h"

namespace hf::guard {

// Whether an open of an owed device can fail, and how often the shield has kept one from failing.
struct ShieldState {
  bool is_on = false;
  bool is_attached = false;   // there are entries, though perhaps not for all devices
  std::string why;            // why it is not on
  std::uint64_t count = 0;    // opens that only the shield allowed, by all entries of the cgroup
  std::uint64_t last_at = 0;  // nanoseconds of CLOCK_MONOTONIC, when the last of them was allowed
};

class Shielding {
 public:
  // `shield`: absent where this kernel supports none; `why_absent` says why.
  Shielding(std::optional<kernel::Shield> shield, std::string why_absent)
      : shield_(std::move(shield)), why_absent_(std::move(why_absent)) {}

  void set_use(container::ShieldUse use) { use_ = use; }
  [[nodiscard]] bool has_shield() const { return shield_.has_value(); }
  [[nodiscard]] const std::string& why_absent() const { return why_absent_; }

  // `parent`: the parent of the container's outermost cgroup. `observed`: the gates of `cgroups` as they are now.
  ShieldState settle(const GuardedContainer& guarded, const kernel::CgroupsOfProcess& cgroups,
                     const kernel::Cgroup* parent, const container::Observed& observed);
  // Call it when the container has ended, or is no longer guarded.
  void forget(const kernel::CgroupsOfProcess& cgroups);
  void keep_only(const std::set<container::CgroupId>& parents, const std::set<container::CgroupId>& cgroups);

 private:
  [[nodiscard]] std::string why_not(const GuardedContainer& guarded, const kernel::CgroupsOfProcess& cgroups,
                                    const kernel::Cgroup* parent, const container::Observed& observed) const;
  Result<ShieldState> enter(const GuardedContainer& guarded, const kernel::CgroupsOfProcess& cgroups,
                            const kernel::Cgroup& parent, const container::Observed& observed);

  std::optional<kernel::Shield> shield_;
  std::string why_absent_;
  container::ShieldUse use_ = container::ShieldUse::automatic;
};

}  // namespace hf::guard
