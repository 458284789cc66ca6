#include "core/cpu/simulate.h"

#include <algorithm>
#include <set>

namespace hf::cpu {
namespace {

class Simulator {
 public:
  Simulator(const Policy& policy, PolicyKind kind) : policy_(policy), kind_(kind) {}

  Result<void> begin() { return kind_ == PolicyKind::none ? Result<void>() : start(policy_, state_); }
  [[nodiscard]] const State& state() const { return state_; }

  Result<StepResult> run(const ScenarioStep& step) {
    StepResult result{.step = step, .cpus = {}, .shared_after = {}, .error = {}, .hints = hints(step)};
    const Result<CpuSet> cpus = apply(step);
    if (!cpus && cpus.error().reason != Reason::unavailable) {
      return std::unexpected(cpus.error());
    }
    result.cpus = cpus.value_or(CpuSet());
    result.error = cpus ? "" : cpus.error().message;
    result.shared_after = state_.shared;
    return result;
  }

 private:
  [[nodiscard]] Hints hints(const ScenarioStep& step) const {
    if (kind_ == PolicyKind::none || step.operation == Operation::remove) {
      return {};
    }
    const Result<Hints> hints = step.operation == Operation::allocate_pod
                                    ? hints_for(policy_, state_, step.pod)
                                    : hints_for(policy_, state_, step.pod, step.container);
    return hints.value_or(Hints());
  }

  Result<CpuSet> apply(const ScenarioStep& step) {
    const Owner owner{step.pod.uid, step.container};
    switch (step.operation) {
      case Operation::allocate: {
        known_.insert(owner);
        if (kind_ == PolicyKind::none) {
          return CpuSet();
        }
        return TRY(allocate(policy_, state_, step.pod, step.container, step.preference)).value_or(CpuSet());
      }
      case Operation::allocate_pod: {
        for (const ContainerRequest& container : step.pod.containers) {
          known_.insert({step.pod.uid, container.name});
        }
        if (kind_ == PolicyKind::none) {
          return CpuSet();
        }
        TRY(allocate_pod(policy_, state_, step.pod, step.preference));
        const auto budget = state_.pods.find(step.pod.uid);
        return budget == state_.pods.end() ? CpuSet() : budget->second;
      }
      case Operation::remove: break;
    }
    if (known_.erase(owner) == 0) {
      return fail(std::errc::invalid_argument,
                  "remove of pod " + owner.pod + " container " + owner.container + ": it was never given anything");
    }
    return remove(state_, owner);
  }

  const Policy& policy_;
  PolicyKind kind_;
  State state_;
  std::set<Owner> known_;  // also those in the shared pool
};

Result<void> check_nodes(const Topology& topology, const NumaPreference& preference) {
  const std::vector<NumaId> known = numa_nodes(topology);
  std::vector<NumaId> named = preference.hint.value_or(std::vector<NumaId>());
  named.insert(named.end(), preference.device_nodes.begin(), preference.device_nodes.end());
  for (const NumaId node : named) {
    if (std::ranges::find(known, node) == known.end()) {
      return fail(std::errc::invalid_argument, "the machine has no NUMA node " + std::to_string(node.value));
    }
  }
  return {};
}

}  // namespace

std::string to_string(Operation operation) {
  switch (operation) {
    case Operation::allocate: return "allocate";
    case Operation::allocate_pod: return "allocate_pod";
    case Operation::remove: return "remove";
  }
  return "";
}

Result<Simulation> simulate(const Scenario& scenario) {
  const Layout layout(scenario.topology);
  Policy policy = TRY(make_policy(layout, scenario.options, scenario.reserved, scenario.reserved_amount));
  policy.budgets = scenario.budgets;
  Simulator simulator(policy, scenario.kind);
  TRY(simulator.begin());
  Simulation simulation{.reserved = policy.reserved, .steps = {}, .state = {}};
  for (std::size_t i = 0; i < scenario.steps.size(); ++i) {
    const Result<void> checked = check_nodes(scenario.topology, scenario.steps[i].preference);
    Result<StepResult> result =
        checked ? simulator.run(scenario.steps[i]) : Result<StepResult>(std::unexpected(checked.error()));
    if (!result) {
      return fail(result.error().code, "scenario: op " + std::to_string(i + 1) + ": " + result.error().message);
    }
    simulation.steps.push_back(*std::move(result));
  }
  simulation.state = simulator.state();
  return simulation;
}

}  // namespace hf::cpu
