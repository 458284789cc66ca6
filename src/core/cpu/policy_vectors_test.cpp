// Compares our decisions about pods with recorded ones of kubelet: the CPUs of each container, refusals and messages.
#include <gtest/gtest.h>

#include "core/cpu/hints.h"
#include "core/cpu/policy.h"
#include "core/cpu/reconcile.h"
#include "support/cpu_vectors.h"
#include "support/vectors.h"

namespace hf::cpu {
namespace {

using Json = nlohmann::json;

std::map<std::string, std::string> option_texts(const Json& options) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, value] : options.items()) {
    texts[name] = value.is_boolean() ? (value.get<bool>() ? "true" : "false") : value.get<std::string>();
  }
  return texts;
}

CpuAmount amount_of(const Json& json) {
  CpuAmount amount;
  if (json["requests"].contains("cpu_milli")) {
    amount.request = json["requests"]["cpu_milli"];
  }
  if (json["limits"].contains("cpu_milli")) {
    amount.limit = json["limits"]["cpu_milli"];
  }
  return amount;
}

PodRequest pod_of(const Json& json) {
  PodRequest pod{.uid = json["uid"], .is_guaranteed = json["qos"] == "Guaranteed", .containers = {}, .cpu_budget = {}};
  for (const Json& container : json["containers"]) {
    const ContainerRole role = container["type"] == "init"      ? ContainerRole::init
                               : container["type"] == "sidecar" ? ContainerRole::sidecar
                                                                : ContainerRole::app;
    pod.containers.push_back({container["name"], role, amount_of(container)});
  }
  if (json.contains("pod_level")) {
    pod.cpu_budget = amount_of(json["pod_level"]);
  }
  return pod;
}

State state_of(const Json& json) {
  State state;
  state.shared = test::cpus(json["default_cpuset"]);
  for (const auto& [pod, containers] : json["assignments"].items()) {
    for (const auto& [container, cpus] : containers.items()) {
      state.entries[{pod, container}] = test::cpus(cpus);
    }
  }
  if (json.contains("pod_assignments")) {
    for (const auto& [pod, cpus] : json["pod_assignments"].items()) {
      state.pods[pod] = test::cpus(cpus);
    }
  }
  return state;
}

std::string describe(const State& state) {
  std::string text = "shared " + to_string(state.shared);
  for (const auto& [owner, cpus] : state.entries) {
    text += "; " + owner.pod + "/" + owner.container + " " + to_string(cpus);
  }
  for (const auto& [pod, cpus] : state.pods) {
    text += "; " + pod + " " + to_string(cpus);
  }
  return text;
}

std::string describe(const Hints& hints) {
  if (!hints) {
    return "no preference";
  }
  std::string text;
  for (const Hint& hint : *hints) {
    for (const NumaId node : hint.nodes) {
      text += std::to_string(node.value) + " ";
    }
    text += hint.is_preferred ? "preferred; " : "; ";
  }
  return text;
}

std::string hints_in(const Json& json) {
  if (json.is_null()) {
    return describe(Hints());
  }
  std::vector<Hint> hints;
  for (const Json& hint : json["cpu"]) {
    hints.push_back({.nodes = {}, .is_preferred = hint["preferred"]});
    for (const std::uint32_t node : hint["numa"]) {
      hints.back().nodes.push_back({node});
    }
  }
  return describe(Hints(hints));
}

class RecordedPolicy : public testing::Test {
 protected:
  void SetUp() override {
    if (test::cpu_vectors().is_null()) {
      GTEST_SKIP() << "no recorded CPU tables at " << test::vectors_directory();
    }
  }

  const Json& table(const char* name, std::size_t size) {
    EXPECT_EQ(test::cpu_vectors()[name].size(), size) << name;
    return test::cpu_vectors()[name];
  }

  // The machine and the policy of an entry; both live as long as the test.
  const Policy& policy_of(const Json& entry) {
    const Json& recorded = entry["policy"];
    layout_ = std::make_unique<Layout>(test::recorded_topology(recorded["topology"]));
    policy_ = make_policy(*layout_, parse_options(option_texts(recorded["options"])).value(),
                          test::cpus(recorded["reserved"]), std::nullopt)
                  .value();
    policy_.budgets = entry["gates"]["PodLevelResourceManagers"] == true ? PodBudgets::honoured : PodBudgets::ignored;
    return policy_;
  }

  static State before(const Json& entry) {
    State state = state_of(entry["before"]);
    for (const auto& [pod, cpus] : entry["policy"]["cpus_to_reuse"].items()) {
      state.reuse = {.pod = pod, .cpus = test::cpus(cpus)};
    }
    return state;
  }

  static NumaPreference preference_of(const Json& numa) {
    NumaPreference preference;
    if (!numa.is_null()) {
      preference.hint.emplace();
      for (const std::uint32_t node : numa) {
        preference.hint->push_back({node});
      }
    }
    return preference;
  }

  static void expect_after(const Json& entry, const State& state, const std::string& error) {
    EXPECT_EQ(error, test::error_of(entry)) << entry["test"] << " " << entry["case"];
    EXPECT_EQ(describe(state), describe(state_of(entry["after"]))) << entry["test"] << " " << entry["case"];
  }

 private:
  std::unique_ptr<Layout> layout_;
  Policy policy_;
};

TEST_F(RecordedPolicy, OptionsAreParsedAndRefused) {
  for (const Json& entry : table("policy_options", 20)) {
    const Result<Options> options = parse_options(entry["options"].is_null() ? std::map<std::string, std::string>()
                                                                             : option_texts(entry["options"]));
    EXPECT_EQ(options ? "" : options.error().message, test::error_of(entry)) << entry["case"];
    if (options) {
      std::map<std::string, bool> parsed = entry["parsed"];
      parsed["prefer-device-numa"] = false;  // ours
      EXPECT_EQ(option_values(*options), parsed) << entry["case"];
    }
  }
}

TEST_F(RecordedPolicy, ReservesTheSameCpus) {
  for (const Json& entry : table("new_static_policy", 46)) {
    const Layout layout(test::recorded_topology(entry["topology"]));
    const Json options = entry["options"].is_null() ? Json::object() : entry["options"];
    const Result<Policy> policy = make_policy(layout, parse_options(option_texts(options)).value(),
                                              test::cpus(entry["reserved_arg"]), entry["num_reserved"]);
    EXPECT_EQ(policy ? "" : policy.error().message, test::error_of(entry)) << entry["case"];
    if (!policy) {
      continue;
    }
    EXPECT_EQ(to_string(policy->reserved), entry["reserved"].get<std::string>()) << entry["case"];
    EXPECT_EQ(to_string(policy->reserved_cores), entry["reserved_physical"].get<std::string>()) << entry["case"];
  }
}

TEST_F(RecordedPolicy, AcceptsTheSameStates) {
  for (const Json& entry : table("start", 25)) {
    State state = before(entry);
    const Result<void> started = start(policy_of(entry), state);
    expect_after(entry, state, started ? "" : started.error().message);
  }
}

TEST_F(RecordedPolicy, AllocatesTheSameCpusToContainers) {
  for (const Json& entry : table("allocate", 112)) {
    State state = before(entry);
    const std::string container = entry["container"];
    const auto given =
        allocate(policy_of(entry), state, pod_of(entry["pod"]), container, preference_of(entry["hint"]["numa"]));
    expect_after(entry, state, given ? "" : given.error().message);
  }
}

TEST_F(RecordedPolicy, AllocatesTheSameCpusToPodsWithABudget) {
  for (const Json& entry : table("allocate_pod", 10)) {
    State state = before(entry);
    const Result<void> given =
        allocate_pod(policy_of(entry), state, pod_of(entry["pod"]), preference_of(entry["hint"]["numa"]));
    expect_after(entry, state, given ? "" : given.error().message);
  }
}

TEST_F(RecordedPolicy, ChoosesTheSameCpusUnderAHint) {
  for (const Json& entry : table("allocate_cpus", 5)) {
    const State state = before(entry);
    const Policy& policy = policy_of(entry);
    const CpuSet allocatable = assignable(policy, state) | test::cpus(entry["reusable"]);
    const Result<CpuSet> chosen = choose(policy, allocatable, entry["num_cpus"], preference_of(entry["numa_affinity"]));
    ASSERT_EQ(chosen ? "" : chosen.error().message, test::error_of(entry)) << entry["case"];
    EXPECT_EQ(to_string(*chosen), entry["result"].get<std::string>()) << entry["case"];
  }
}

TEST_F(RecordedPolicy, ReleasesTheSameCpus) {
  for (const Json& entry : table("remove", 5)) {
    State state = before(entry);
    remove(state, {entry["pod_uid"], entry["container"]});
    expect_after(entry, state, "");
  }
}

TEST_F(RecordedPolicy, AcceptsTheSameBudgets) {
  for (const Json& entry : table("validate_pod_scope", 11)) {
    const Result<void> checked = check_budget(pod_of(entry["pod"]));
    EXPECT_EQ(checked ? "" : checked.error().message, test::error_of(entry)) << entry["case"];
  }
}

TEST_F(RecordedPolicy, CountsTheSameExclusiveCpusOfPods) {
  for (const Json& entry : table("pod_guaranteed_cpus", 13)) {
    EXPECT_EQ(exclusive_cpu_count(pod_of(entry["pod"])), entry["cpus"].get<std::uint32_t>()) << entry["case"];
  }
}

TEST_F(RecordedPolicy, HintsTheSameNodesForContainers) {
  for (const Json& entry : table("container_hints", 17)) {
    const State state = before(entry);
    const std::string container = entry["container"];
    const Result<Hints> hints = hints_for(policy_of(entry), state, pod_of(entry["pod"]), container);
    ASSERT_TRUE(hints) << hints.error().message;
    EXPECT_EQ(describe(*hints), hints_in(entry["hints"])) << entry["case"];
  }
}

TEST_F(RecordedPolicy, HintsTheSameNodesForPods) {
  for (const Json& entry : table("pod_hints", 20)) {
    const State state = before(entry);
    const Result<Hints> hints = hints_for(policy_of(entry), state, pod_of(entry["pod"]));
    ASSERT_TRUE(hints) << hints.error().message;
    EXPECT_EQ(describe(*hints), hints_in(entry["hints"])) << entry["case"];
  }
}

// The containers of the pods as kubelet's reconcile loop sees them.
std::vector<ManagedContainer> managed_containers_of(const Json& pods) {
  std::vector<ManagedContainer> managed_containers;
  for (const Json& pod : pods) {
    for (const Json& container : pod["containers"]) {
      ManagedContainer managed{
          .owner = {pod["uid"], container["name"]}, .id = "", .phase = Phase::unknown, .present = {}};
      for (const Json& status : pod["container_statuses"]) {
        if (status["name"] == container["name"]) {
          const std::string id = status["container_id"];
          managed.id = id.substr(id.find("//") + 2);
          managed.phase = status["state"] == "running" ? Phase::running : Phase::unknown;
          managed.present = *parse_cpu_set("0-7");  // as it was created: kubelet has not written to it yet
        }
      }
      managed_containers.push_back(managed);
    }
  }
  return managed_containers;
}

TEST_F(RecordedPolicy, ReconcilesToTheSameCpusets) {
  for (const Json& entry : table("reconcile", 9)) {
    State state = state_of(entry["before"]);
    const std::vector<ManagedContainer> managed_containers = managed_containers_of(entry["active_pods"]);
    std::vector<Owner> alive;
    for (const ManagedContainer& managed : managed_containers) {
      alive.push_back(managed.owner);
    }
    for (const Owner& stale : stale_owners(state, alive)) {
      remove(state, stale);
    }
    EXPECT_EQ(describe(state), describe(state_of(entry["after"]))) << entry["case"];
    const Reconciliation plan = plan_reconcile(state, managed_containers);
    std::vector<std::string> calls;
    for (const Json& call : entry["runtime_calls"]) {
      calls.push_back(call["container_id"].get<std::string>() + " " + call["cpuset_cpus"].get<std::string>());
    }
    std::vector<std::string> writes;
    for (const Write& write : plan.writes) {
      writes.push_back(write.id + " " + to_string(write.cpus));
    }
    EXPECT_EQ(writes, calls) << entry["case"];
    // A failed call is a failure of the caller, not of the plan.
    EXPECT_EQ(plan.skipped.size(), calls.empty() ? entry["failure"].size() : 0) << entry["case"];
  }
}

}  // namespace
}  // namespace hf::cpu
