// Reconcile: plans the writes that bring the containers' cpusets to what the state says. No single write puts a
// container on a core that another one owns, and no cpuset is ever empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cpu/state.h"

namespace hf::cpu {

// contested: another program keeps setting another cpuset.
enum class Phase : std::uint8_t { running, starting, ended, unknown, contested };

struct ManagedContainer {
  Owner owner;
  std::string id;                       // the engine's; "" where it has none yet
  Phase phase = Phase::running;         // only running containers are written to
  std::optional<CpuSet> present;        // absent: it could not be read
  bool can_own = true;                  // it is of a Guaranteed pod: no other has exclusive CPUs
  std::optional<CpuSet> confined = {};  // to CPUs of the pool: by its configuration, or by a cgroup above it
  bool is_of_user = false;              // an unprivileged one, who may have made it so that it cannot be moved
};

// Others wait until it has left their CPUs. A user's that cannot be moved would keep them for ever.
bool blocks_others(const ManagedContainer& managed);

struct Write {
  std::string id;
  Owner owner;
  CpuSet cpus;
  bool is_intermediate = false;  // not yet the CPUs that the state says

  friend bool operator==(const Write&, const Write&) = default;
};

struct Skipped {
  Owner owner;
  std::string id;
  std::string why;
};

struct Reconciliation {
  std::vector<Write> writes;  // in this order
  std::vector<Skipped> skipped;
};

// The CPUs that a container is to run on: its own, or those of the pool that its configuration allows.
CpuSet target_of(const State& state, const ManagedContainer& managed);

Reconciliation plan_reconcile(const State& state, const std::vector<ManagedContainer>& managed_containers);

}  // namespace hf::cpu
