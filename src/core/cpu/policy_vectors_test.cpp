// Kubelet's recorded decisions about pods: who gets which CPUs, who is refused and in which words.
#include <gtest/gtest.h>

#include "core/cpu/hints.h"
#include "core/cpu/policy.h"
#include "core/cpu/reconcile.h"
#include "support/cpu_vectors.h"
#include "support/vectors.h"

namespace hf::cpu {
namespace {

using Json = nlohmann::json;

std::map<std::string, std::string> words_of(const Json& options) {
  std::map<std::string, std::string> words;
  for (const auto& [name, value] : options.items()) {
    words[name] = value.is_boolean() ? (value.get<bool>() ? "true" : "false") : value.get<std::string>();
  }
  return words;
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

PodAsk pod_of(const Json& json) {
  PodAsk pod{.uid = json["uid"], .is_guaranteed = json["qos"] == "Guaranteed", .containers = {}, .shared_between = {}};
  for (const Json& container : json["containers"]) {
    const ContainerRole role = container["type"] == "init"      ? ContainerRole::init
                               : container["type"] == "sidecar" ? ContainerRole::sidecar
                                                                : ContainerRole::app;
    pod.containers.push_back({container["name"], role, amount_of(container)});
  }
  if (json.contains("pod_level")) {
    pod.shared_between = amount_of(json["pod_level"]);
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

std::string to_words(const State& state) {
  std::string text = "shared " + to_string(state.shared);
  for (const auto& [owner, cpus] : state.entries) {
    text += "; " + owner.pod + "/" + owner.container + " " + to_string(cpus);
  }
  for (const auto& [pod, cpus] : state.pods) {
    text += "; " + pod + " " + to_string(cpus);
  }
  return text;
}

std::string to_words(const Hints& hints) {
  if (!hints) {
    return "no opinion";
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
    return to_words(Hints());
  }
  std::vector<Hint> hints;
  for (const Json& hint : json["cpu"]) {
    hints.push_back({.nodes = {}, .is_preferred = hint["preferred"]});
    for (const std::uint32_t node : hint["numa"]) {
      hints.back().nodes.push_back({node});
    }
  }
  return to_words(Hints(hints));
}

class RecordedPolicy : public testing::Test {
 protected:
  void SetUp() override {
    if (test::cpu_vectors().is_null()) {
      GTEST_SKIP() << "no recorded CPU tables at " << test::vectors_folder();
    }
  }

  const Json& table(const char* name, std::size_t size) {
    EXPECT_EQ(test::cpu_vectors()[name].size(), size) << name;
    return test::cpu_vectors()[name];
  }

  // The machine and the rules of an entry; both live as long as the test.
  const Policy& policy_of(const Json& entry) {
    const Json& recorded = entry["policy"];
    layout_ = std::make_unique<Layout>(test::recorded_topology(recorded["topology"]));
    policy_ = make_policy(*layout_, parse_options(words_of(recorded["options"])).value(),
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

  static Wish wish_of(const Json& numa) {
    Wish wish;
    if (!numa.is_null()) {
      wish.hint.emplace();
      for (const std::uint32_t node : numa) {
        wish.hint->push_back({node});
      }
    }
    return wish;
  }

  static void expect_after(const Json& entry, const State& state, const std::string& error) {
    EXPECT_EQ(error, test::error_of(entry)) << entry["test"] << " " << entry["case"];
    EXPECT_EQ(to_words(state), to_words(state_of(entry["after"]))) << entry["test"] << " " << entry["case"];
  }

 private:
  std::unique_ptr<Layout> layout_;
  Policy policy_;
};

TEST_F(RecordedPolicy, OptionsAreReadAndRefused) {
  for (const Json& entry : table("policy_options", 20)) {
    const Result<Options> options =
        parse_options(entry["options"].is_null() ? std::map<std::string, std::string>() : words_of(entry["options"]));
    EXPECT_EQ(options ? "" : options.error().message, test::error_of(entry)) << entry["case"];
    if (options) {
      std::map<std::string, bool> parsed = entry["parsed"];
      parsed["prefer-device-numa"] = false;  // ours
      EXPECT_EQ(to_words(*options), parsed) << entry["case"];
    }
  }
}

TEST_F(RecordedPolicy, ReservesTheSameCpus) {
  for (const Json& entry : table("new_static_policy", 46)) {
    const Layout layout(test::recorded_topology(entry["topology"]));
    const Json options = entry["options"].is_null() ? Json::object() : entry["options"];
    const Result<Policy> policy = make_policy(layout, parse_options(words_of(options)).value(),
                                              test::cpus(entry["reserved_arg"]), entry["num_reserved"]);
    EXPECT_EQ(policy ? "" : policy.error().message, test::error_of(entry)) << entry["case"];
    if (!policy) {
      continue;
    }
    EXPECT_EQ(to_string(policy->reserved), entry["reserved"]) << entry["case"];
    EXPECT_EQ(to_string(policy->reserved_cores), entry["reserved_physical"]) << entry["case"];
  }
}

TEST_F(RecordedPolicy, StartsFromTheSameStates) {
  for (const Json& entry : table("start", 25)) {
    State state = before(entry);
    const Result<void> started = start(policy_of(entry), state);
    expect_after(entry, state, started ? "" : started.error().message);
  }
}

TEST_F(RecordedPolicy, GivesContainersTheSameCpus) {
  for (const Json& entry : table("allocate", 112)) {
    State state = before(entry);
    const std::string container = entry["container"];
    const auto given =
        allocate(policy_of(entry), state, pod_of(entry["pod"]), container, wish_of(entry["hint"]["numa"]));
    expect_after(entry, state, given ? "" : given.error().message);
  }
}

TEST_F(RecordedPolicy, GivesPodsWithABudgetTheSameCpus) {
  for (const Json& entry : table("allocate_pod", 10)) {
    State state = before(entry);
    const Result<void> given =
        allocate_pod(policy_of(entry), state, pod_of(entry["pod"]), wish_of(entry["hint"]["numa"]));
    expect_after(entry, state, given ? "" : given.error().message);
  }
}

TEST_F(RecordedPolicy, ChoosesTheSameCpusUnderAHint) {
  for (const Json& entry : table("allocate_cpus", 5)) {
    const State state = before(entry);
    const Policy& policy = policy_of(entry);
    const CpuSet allocatable = assignable(policy, state) | test::cpus(entry["reusable"]);
    const Result<CpuSet> chosen = choose(policy, allocatable, entry["num_cpus"], wish_of(entry["numa_affinity"]));
    ASSERT_EQ(chosen ? "" : chosen.error().message, test::error_of(entry)) << entry["case"];
    EXPECT_EQ(to_string(*chosen), entry["result"]) << entry["case"];
  }
}

TEST_F(RecordedPolicy, TakesTheSameCpusBack) {
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

TEST_F(RecordedPolicy, CountsTheSameCpusOfPods) {
  for (const Json& entry : table("pod_guaranteed_cpus", 13)) {
    EXPECT_EQ(cpus_of_its_own(pod_of(entry["pod"])), entry["cpus"].get<std::uint32_t>()) << entry["case"];
  }
}

TEST_F(RecordedPolicy, HintsTheSameNodesForContainers) {
  for (const Json& entry : table("container_hints", 17)) {
    const State state = before(entry);
    const std::string container = entry["container"];
    const Result<Hints> hints = hints_for(policy_of(entry), state, pod_of(entry["pod"]), container);
    ASSERT_TRUE(hints) << hints.error().message;
    EXPECT_EQ(to_words(*hints), hints_in(entry["hints"])) << entry["case"];
  }
}

TEST_F(RecordedPolicy, HintsTheSameNodesForPods) {
  for (const Json& entry : table("pod_hints", 20)) {
    const State state = before(entry);
    const Result<Hints> hints = hints_for(policy_of(entry), state, pod_of(entry["pod"]));
    ASSERT_TRUE(hints) << hints.error().message;
    EXPECT_EQ(to_words(*hints), hints_in(entry["hints"])) << entry["case"];
  }
}

// One pod as kubelet's loop sees it: a resident for every container it has a status of.
std::vector<Resident> residents_of(const Json& pods) {
  std::vector<Resident> residents;
  for (const Json& pod : pods) {
    for (const Json& container : pod["containers"]) {
      Resident resident{.owner = {pod["uid"], container["name"]}, .id = "", .phase = Phase::unknown, .present = {}};
      for (const Json& status : pod["container_statuses"]) {
        if (status["name"] == container["name"]) {
          const std::string id = status["container_id"];
          resident.id = id.substr(id.find("//") + 2);
          resident.phase = status["state"] == "running" ? Phase::running : Phase::unknown;
          resident.present = *parse_cpu_set("0-7");  // as it was made: kubelet has not written to it yet
        }
      }
      residents.push_back(resident);
    }
  }
  return residents;
}

TEST_F(RecordedPolicy, ReconcilesToTheSameCpusets) {
  for (const Json& entry : table("reconcile", 9)) {
    State state = state_of(entry["before"]);
    const std::vector<Resident> residents = residents_of(entry["active_pods"]);
    std::vector<Owner> alive;
    for (const Resident& resident : residents) {
      alive.push_back(resident.owner);
    }
    for (const Owner& stale : stale_owners(state, alive)) {
      remove(state, stale);
    }
    EXPECT_EQ(to_words(state), to_words(state_of(entry["after"]))) << entry["case"];
    const Reconciliation plan = plan_reconcile(state, residents);
    std::vector<std::string> calls;
    for (const Json& call : entry["runtime_calls"]) {
      calls.push_back(call["container_id"].get<std::string>() + " " + call["cpuset_cpus"].get<std::string>());
    }
    std::vector<std::string> writes;
    for (const Write& write : plan.writes) {
      writes.push_back(write.id + " " + to_string(write.cpus));
    }
    EXPECT_EQ(writes, calls) << entry["case"];
    // A call that fails is the caller's failure, not the plan's.
    EXPECT_EQ(plan.skipped.size(), calls.empty() ? entry["failure"].size() : 0) << entry["case"];
  }
}

}  // namespace
}  // namespace hf::cpu
