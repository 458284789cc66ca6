// Assign: gives exclusive CPUs to the containers that ask for them, and takes back those of containers that have ended.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/cpu/policy.h"
#include "core/cpu/request.h"
#include "core/cpu/state.h"

namespace hf::cpu {

// A container that is to run on CPUs of its own, or in the shared pool.
struct Tenant {
  Owner owner;
  std::string id;                         // unique on the host: its cgroup
  std::optional<CpuRequest> request;      // absent: it asks for nothing
  std::vector<NumaId> device_nodes = {};  // of its devices
  bool is_by_hand = false;                // what it has was given by hand, and stays whatever it asks for
  std::optional<CpuSet> confined = {};    // to these: by its configuration, or by a cgroup above it
};

struct Refusal {
  Owner owner;
  std::string why;
};

struct Assigned {
  State state;
  std::vector<Refusal> refusals;  // these run in the shared pool, and are tried again
};

// Tenants are served in their order. An entry without CPUs means that they were released by hand: such a tenant
// is not served. CPUs that a tenant is not allowed any more are replaced. Others: entries of owners that are no
// tenants.
enum class Others : std::uint8_t { removed, kept };
Assigned assign(const Policy& policy, State state, const std::vector<Tenant>& tenants, Others others);

// Gives a tenant `request.count` CPUs at once, in place of those that it has.
Result<CpuSet> assign_one(const Policy& policy, State& state, const Tenant& tenant, const CpuRequest& request);

// Leaves a tenant `count` of its CPUs, those that would have been chosen from them.
Result<void> shrink(const Policy& policy, State& state, const Tenant& tenant, std::uint32_t count);

// Takes back the CPUs of an owner, which is not served again while it lives.
void release(State& state, const Owner& owner);

// The state without the entries of owners whose CPUs were taken back: what is to be in force.
State in_force(State state);

// Adapts a state to a machine whose CPUs have gone offline or come back: an owner loses CPUs that are offline, and the
// others are in the pool.
State adapt(const Policy& policy, State state);

// What is recorded of a change: owners that it did not touch keep the CPUs that are offline, and have them again when
// these come back. `here`: `before`, adapted; `changed`: `here` after the change.
State with_offline_cpus(State changed, const State& here, const State& before, const std::set<Owner>& alive);

}  // namespace hf::cpu
