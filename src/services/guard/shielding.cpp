#include "services/guard/shielding.h"

#include <algorithm>

#include "core/container/guard/shield.h"

namespace hf::guard {

using container::ShieldUse;

std::string Shielding::why_not(const GuardedContainer& guarded, const kernel::CgroupsOfProcess& cgroups,
                               const kernel::Cgroup* parent, const container::Observed& observed) const {
  if (!cgroups.v2 || parent == nullptr) {
    return "cgroup v1 has no shield: its rules are healed";
  }
  if (guarded.healed->nodes.empty()) {
    return "the policy only observes it";
  }
  if (use_ == ShieldUse::off) {
    return "guard.shield is off";
  }
  if (!shield_) {
    return why_absent_;
  }
  if (parent->path.is_root() && use_ != ShieldUse::with_root) {
    return "its cgroup is directly below the root cgroup, where only 'guard.shield: root' attaches a shield";
  }
  return container::why_not_shielded(observed, depth_of(parent->path));
}

Result<ShieldState> Shielding::enter(const GuardedContainer& guarded, const kernel::CgroupsOfProcess& cgroups,
                                     const kernel::Cgroup& parent, const container::Observed& observed) {
  if (const Result<void> above = shield_->check_above(parent); !above) {
    TRY(shield_->clear(cgroups.v2->id));
    return std::unexpected(above.error());
  }
  const container::ShieldPlan plan = container::plan_shield(*guarded.healed, observed, depth_of(parent.path));
  TRY(shield_->set(cgroups.v2->id, parent, plan.entries));
  if (plan.entries.empty()) {
    ShieldState none;
    none.why = plan.refused.empty() ? "none of its devices is there" : plan.refused.front();
    return none;
  }
  TRY(shield_->attach(parent));
  ShieldState state;
  state.is_attached = true;
  for (const container::ShieldEntry& entry : TRY(shield_->entries_of(cgroups.v2->id, parent))) {
    state.count += entry.count;
    state.last_at = std::max(state.last_at, entry.last_at);
  }
  const bool is_healed_on_v1 = cgroups.v1 && !cgroups.v1->path.is_root();
  state.is_on = plan.refused.empty() && !is_healed_on_v1;
  state.why = !plan.refused.empty() ? plan.refused.front()
              : is_healed_on_v1     ? "cgroup v1 has no shield: its rules are healed"
                                    : "";
  return state;
}

ShieldState Shielding::settle(const GuardedContainer& guarded, const kernel::CgroupsOfProcess& cgroups,
                              const kernel::Cgroup* parent, const container::Observed& observed) {
  std::string why = why_not(guarded, cgroups, parent, observed);
  if (!why.empty()) {
    forget(cgroups);
    return {false, false, std::move(why)};
  }
  Result<ShieldState> state = enter(guarded, cgroups, *parent, observed);
  return state ? *std::move(state) : ShieldState{false, false, state.error().message};
}

void Shielding::forget(const kernel::CgroupsOfProcess& cgroups) {
  if (shield_ && cgroups.v2) {
    (void)shield_->clear(cgroups.v2->id);
  }
}

void Shielding::keep_only(const std::set<container::CgroupId>& parents, const std::set<container::CgroupId>& cgroups) {
  if (shield_) {
    shield_->keep_only(parents, cgroups);
  }
}

}  // namespace hf::guard
