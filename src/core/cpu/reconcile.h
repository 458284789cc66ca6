// Reconcile: from what the containers' cpusets are to what the state says, as a list of writes. After every single one
// of them no container is newly on a core that is another's own, and no cpuset is empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cpu/state.h"

namespace hf::cpu {

enum class Phase : std::uint8_t { running, starting, ended, unknown };

struct Resident {
  Owner owner;
  std::string id;                 // the engine's; "" where it has none yet
  Phase phase = Phase::running;   // only those that run are written to
  std::optional<CpuSet> present;  // none: it could not be read
  bool can_own = true;            // a Guaranteed pod's: no other has CPUs of its own
};

struct Write {
  std::string id;
  Owner owner;
  CpuSet cpus;
  bool is_on_the_way = false;  // it is not where it belongs yet

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

Reconciliation plan_reconcile(const State& state, const std::vector<Resident>& residents);

}  // namespace hf::cpu
