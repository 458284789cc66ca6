// Drift: what a container is owed and has not, and the Repair that gives it back.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/bpf/generate.h"
#include "core/container/change.h"
#include "core/container/entitlement.h"
#include "core/container/gate.h"

namespace hf::container {

struct Drift {
  std::vector<std::string> denied;   // paths of owed nodes that the rules refuse, whatever the shield says
  std::vector<std::string> held;     // of those, what the shield keeps open
  device::RuleSet missing;           // of those, what the container's own gates refuse
  std::vector<std::string> above;    // "/dev/nvidia0: refused by …": a gate above is never widened
  std::vector<std::string> unclear;  // nobody can tell without asking from its seat

  [[nodiscard]] bool is_none() const { return denied.empty(); }
  [[nodiscard]] bool is_loss() const { return held.size() < denied.size(); }
};
Drift compare(const Entitlement& owed, const Observed& observed);

// The rules alone: what holds if the shield is taken off.
Observed without_shields(Observed observed);

struct Repair {
  Plan plan;                         // no steps: there is nothing we could do
  std::vector<std::string> refused;  // what could not be planned, and why
};

// Never more than what is owed, never above the container's own cgroup. Rules that one gate will not let us give do not
// keep the others back.
Repair plan_repair(const Observed& observed, const Drift& drift, const bpf::Generate& generate = bpf::generate);

}  // namespace hf::container
