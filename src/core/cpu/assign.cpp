#include "core/cpu/assign.h"

#include <algorithm>

namespace hf::cpu {
namespace {

Policy policy_for(const Policy& policy, const CpuRequest& request) {
  Policy own = policy;
  if (request.options) {
    const bool is_strict = policy.options.strict_reservation;  // it is about the pool, not about one container
    own.options = *request.options;
    own.options.strict_reservation = is_strict;
  }
  own.options.near_devices = own.options.near_devices || request.is_near_devices;
  return own;
}

NumaPreference preference_of(const Tenant& tenant, const CpuRequest& request) {
  NumaPreference preference;
  if (request.is_near_devices) {
    preference.device_nodes = tenant.device_nodes;
  }
  return preference;
}

// With strict-cpu-reservation the reserved CPUs are not in the pool, and something must be.
Result<void> check_pool(const State& state) {
  return state.shared.empty() ? fail(Reason::unavailable,
                                     "not enough cpus available to satisfy request: none would be left to the others")
                              : Result<void>();
}

CpuSet not_allowed(const State& state, const Tenant& tenant) {
  return tenant.confined ? state.shared - *tenant.confined : CpuSet();
}

// Says so where it may not have others.
std::unexpected<Error> refuse(const Tenant& tenant, Error error) {
  error.message += tenant.confined ? "; it is confined to " + to_string(*tenant.confined) : "";
  return std::unexpected(std::move(error));
}

Result<CpuSet> give(const Policy& policy, State& state, const Tenant& tenant, const CpuRequest& request) {
  const Policy own = policy_for(policy, request);
  TRY(check_options(own.options, own.layout->topology));
  const PodRequest pod{.uid = tenant.owner.pod,
                       .is_guaranteed = true,
                       .containers = {{tenant.owner.container, ContainerRole::app, whole_cpus(request.count)}},
                       .cpu_budget = {}};
  State next = state;
  next.shared -= not_allowed(state, tenant);
  const Result<std::optional<CpuSet>> given =
      allocate(own, next, pod, tenant.owner.container, preference_of(tenant, request));
  if (!given) {
    return refuse(tenant, given.error());
  }
  next.shared |= not_allowed(state, tenant);
  TRY(check_pool(next));
  state = std::move(next);
  return given->value_or(CpuSet());
}

// After CPUs that were offline have come back.
Result<void> complete(const Policy& policy, State& state, const Tenant& tenant, const CpuRequest& request) {
  const CpuSet& entry = state.entries.at(tenant.owner);
  const Result<CpuSet> more =
      choose(policy_for(policy, request), assignable(policy, state) - not_allowed(state, tenant),
             request.count - entry.count(), preference_of(tenant, request));
  if (!more) {
    return refuse(tenant, more.error());
  }
  State next = state;
  next.entries.at(tenant.owner) |= *more;
  next.shared -= *more;
  TRY(check_pool(next));
  state = std::move(next);
  return {};
}

// What a cgroup above it does not allow any more it cannot use, and others may.
void drop_not_allowed(State& state, const Tenant& tenant) {
  const auto entry = state.entries.find(tenant.owner);
  if (entry == state.entries.end() || !tenant.confined || tenant.confined->contains(entry->second)) {
    return;
  }
  state.shared |= entry->second - *tenant.confined;
  entry->second &= *tenant.confined;
  if (entry->second.empty()) {
    state.entries.erase(entry);
  }
}

Result<void> serve(const Policy& policy, State& state, const Tenant& tenant) {
  drop_not_allowed(state, tenant);
  const CpuSet* const entry = find_entry(state, tenant.owner);
  if (entry == nullptr) {
    TRY(give(policy, state, tenant, *tenant.request));
    return {};
  }
  const bool is_short = !entry->empty() && entry->count() < tenant.request->count;
  return is_short ? complete(policy, state, tenant, *tenant.request) : Result<void>();
}

}  // namespace

Assigned assign(const Policy& policy, State state, const std::vector<Tenant>& tenants, Others others) {
  Assigned assigned{.state = std::move(state), .refusals = {}};
  if (others == Others::removed) {
    std::vector<Owner> alive;
    alive.reserve(tenants.size());
    std::ranges::transform(tenants, std::back_inserter(alive), &Tenant::owner);
    for (const Owner& owner : stale_owners(assigned.state, alive)) {
      remove(assigned.state, owner);
    }
  }
  for (const Tenant& tenant : tenants) {
    if (!tenant.request || tenant.is_by_hand) {
      continue;
    }
    if (const Result<void> served = serve(policy, assigned.state, tenant); !served) {
      assigned.refusals.push_back({tenant.owner, served.error().message});
    }
  }
  return assigned;
}

Result<CpuSet> assign_one(const Policy& policy, State& state, const Tenant& tenant, const CpuRequest& request) {
  State next = state;
  remove(next, tenant.owner);
  const CpuSet given = TRY(give(policy, next, tenant, request));
  state = std::move(next);
  return given;
}

Result<void> shrink(const Policy& policy, State& state, const Tenant& tenant, std::uint32_t count) {
  const CpuSet* const entry = find_entry(state, tenant.owner);
  if (entry == nullptr || entry->count() <= count) {
    return {};
  }
  const CpuRequest request = tenant.request.value_or(CpuRequest());
  const CpuSet kept = TRY(choose(policy_for(policy, request), *entry, count, preference_of(tenant, request)));
  state.shared |= *entry - kept;
  state.entries[tenant.owner] = kept;
  return {};
}

void release(State& state, const Owner& owner) {
  remove(state, owner);
  state.entries[owner] = CpuSet();
}

State in_force(State state) {
  std::erase_if(state.entries, [](const auto& entry) { return entry.second.empty(); });
  return state;
}

State adapt(const Policy& policy, State state) {
  const CpuSet& online = policy.layout->cpus;
  for (auto at = state.entries.begin(); at != state.entries.end();) {
    const bool had_some = !at->second.empty();
    at->second &= online - policy.reserved;
    at = had_some && at->second.empty() ? state.entries.erase(at) : std::next(at);
  }
  state.shared = online - given_cpus(state) - (policy.options.strict_reservation ? policy.reserved : CpuSet());
  state.reuse = {};
  return state;
}

State with_offline_cpus(State changed, const State& here, const State& before, const std::set<Owner>& alive) {
  for (const auto& [owner, cpus] : before.entries) {
    const CpuSet* const adapted = find_entry(here, owner);
    const CpuSet* const now = find_entry(changed, owner);
    const bool is_untouched = adapted == nullptr ? now == nullptr : now != nullptr && *now == *adapted;
    if (is_untouched && (now != nullptr || alive.contains(owner))) {
      changed.entries[owner] = cpus;
    }
  }
  return changed;
}

}  // namespace hf::cpu
