// Drift: the owed devices that a container's rules refuse, and the Repair that restores access to them.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/bpf/generate.h"
#include "core/container/entitlement/entitlement.h"
#include "core/container/gate/change.h"
#include "core/container/gate/gate.h"

namespace hf::container {

struct Drift {
  std::vector<std::string> denied;   // paths of owed device nodes that the rules refuse, with or without a shield
  std::vector<std::string> held;     // of those, the ones that the shield keeps open
  device::RuleSet missing;           // of those, the ones that the container's own gates refuse
  std::vector<std::string> above;    // "/dev/nvidia0: refused by …": a gate above is never widened
  std::vector<std::string> unclear;  // only a probe from inside the container can tell

  [[nodiscard]] bool is_none() const { return denied.empty(); }
  [[nodiscard]] bool is_loss() const { return held.size() < denied.size(); }
};
Drift compare(const Entitlement& owed, const Observed& observed);

// Returns the gates without shields: the rules that are in force if the shield is detached.
Observed without_shields(Observed observed);

struct Repair {
  Plan plan;                         // no steps: nothing can be repaired
  std::vector<std::string> refused;  // what could not be planned, and why
};

// Plans never more than what is owed, and never above the container's own cgroup. A rule that a gate refuses does not
// prevent the others from being repaired.
Repair plan_repair(const Observed& observed, const Drift& drift, const bpf::Generate& generate = bpf::generate);

}  // namespace hf::container
