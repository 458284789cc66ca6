// Shielding: keeps the shield's entries for one cgroup of a container as its owed devices and the gates above it say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/container/gate.h"
#include "core/container/policy.h"
#include "kernel/shield.h"
#include "services/guard/ward.h"

namespace hf::guard {

// Whether an open of an owed device can fail, and how often the shield has kept one from failing.
struct ShieldState {
  bool is_on = false;
  bool is_attached = false;   // there are entries, though perhaps not of all devices
  std::string why;            // where it is not
  std::uint64_t count = 0;    // of all entries of the cgroup
  std::uint64_t last_at = 0;  // nanoseconds of CLOCK_MONOTONIC, of the last time
};

class Shielding {
 public:
  // `shield`: absent where this kernel has none; `why_absent` says why.
  Shielding(std::optional<kernel::Shield> shield, std::string why_absent)
      : shield_(std::move(shield)), why_absent_(std::move(why_absent)) {}

  void set_use(container::ShieldUse use) { use_ = use; }
  [[nodiscard]] bool has_shield() const { return shield_.has_value(); }
  [[nodiscard]] const std::string& why_absent() const { return why_absent_; }

  // `parent`: above the container's outermost cgroup. `observed`: the gates of `cgroups` as they are now.
  ShieldState settle(const Ward& ward, const kernel::CgroupsOfProcess& cgroups, const kernel::Cgroup* parent,
                     const container::Observed& observed);
  // The container has ended, or is no longer guarded.
  void forget(const kernel::CgroupsOfProcess& cgroups);
  void keep_only(const std::set<container::CgroupId>& parents, const std::set<container::CgroupId>& cgroups);

 private:
  [[nodiscard]] std::string why_not(const Ward& ward, const kernel::CgroupsOfProcess& cgroups,
                                    const kernel::Cgroup* parent, const container::Observed& observed) const;
  Result<ShieldState> enter(const Ward& ward, const kernel::CgroupsOfProcess& cgroups, const kernel::Cgroup& parent,
                            const container::Observed& observed);

  std::optional<kernel::Shield> shield_;
  std::string why_absent_;
  container::ShieldUse use_ = container::ShieldUse::automatic;
};

}  // namespace hf::guard
