// Simulate: what a sequence of containers would be given on some machine, for planning and for tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/cpu/policy.h"

namespace hf::cpu {

// kubelet's names are none and static. Under none nobody has CPUs of his own.
enum class PolicyKind : std::uint8_t { none, fixed };

enum class Operation : std::uint8_t { allocate, allocate_pod, remove };

std::string to_string(Operation operation);

struct ScenarioStep {
  Operation operation = Operation::allocate;
  std::string container;  // of an allocate or a remove
  PodAsk pod;             // of a remove only its uid
  Wish wish = {};
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
  CpuSet cpus;  // given, or given back; empty where it runs in the shared pool
  CpuSet shared_after;
  std::string error;  // kubelet's words, "" where it went well
};

struct Simulation {
  CpuSet reserved;
  std::vector<StepResult> steps;
  State state;  // in the end
};

// Fails where the scenario makes no sense: reserved CPUs the machine has not, a remove of what was never given.
Result<Simulation> simulate(const Scenario& scenario);

}  // namespace hf::cpu
