// Simulate: the CPUs that a sequence of containers would get on some machine, for planning and for tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/cpu/hints.h"
#include "core/cpu/policy.h"

namespace hf::cpu {

// Kubelet calls them none and static. Under none no container has exclusive CPUs.
enum class PolicyKind : std::uint8_t { none, fixed };

enum class Operation : std::uint8_t { allocate, allocate_pod, remove };

std::string to_string(Operation operation);

struct ScenarioStep {
  Operation operation = Operation::allocate;
  std::string container;  // of an allocate or a remove
  PodRequest pod;         // of a remove: only its uid
  NumaPreference preference = {};
};

struct Scenario {
  Topology topology;
  PolicyKind kind = PolicyKind::fixed;
  Options options;
  CpuSet reserved;
  std::optional<std::uint32_t> reserved_amount;  // where there is no list
  PodBudgets budgets = PodBudgets::ignored;
  std::vector<ScenarioStep> steps;
};

struct StepResult {
  ScenarioStep step;
  CpuSet cpus;  // allocated or released; empty where it runs in the shared pool
  CpuSet shared_after;
  std::string error;  // kubelet's message, "" on success
  // What kubelet's topology manager is told before. Absent: nothing, also on a machine with too many NUMA nodes.
  Hints hints;
};

struct Simulation {
  CpuSet reserved;
  std::vector<StepResult> steps;
  State state;  // after the last step
};

// Fails for an invalid scenario: reserved CPUs that the machine does not have, a remove of what was never allocated.
Result<Simulation> simulate(const Scenario& scenario);

}  // namespace hf::cpu
