// What policy and reconciliation keep to on any machine, for any request, in any order.
#include <gtest/gtest.h>

#include "core/cpu/machine.h"
#include "core/cpu/policy.h"
#include "core/cpu/reconcile.h"
#include "support/random_machine.h"

namespace hf::cpu {
namespace {

Options random_options(test::Random& random) {
  Options options;
  options.full_cores = random.one_in(2);
  options.across_numa = random.one_in(3);
  options.across_cores = !options.full_cores && !options.across_numa && random.one_in(3);
  options.by_cache = !options.across_numa && !options.across_cores && random.one_in(3);
  options.strict_reservation = random.one_in(2);
  options.near_devices = random.one_in(2);
  return options;
}

NumaPreference random_preference(test::Random& random, const Topology& topology) {
  const std::vector<NumaId> nodes = numa_nodes(topology);
  NumaPreference preference;
  if (random.one_in(2)) {
    preference.hint.emplace();
    for (const NumaId node : nodes) {
      if (random.one_in(2)) {
        preference.hint->push_back(node);
      }
    }
  }
  if (random.one_in(2)) {
    preference.device_nodes.push_back(nodes[random.below(std::uint32_t(nodes.size()))]);
  }
  return preference;
}

PodRequest random_pod(test::Random& random, std::uint32_t number) {
  PodRequest pod{.uid = "pod" + std::to_string(number), .is_guaranteed = !random.one_in(8)};
  for (std::uint32_t i = 0; i < 1 + random.below(3); ++i) {
    const ContainerRole role = i == 0 && random.one_in(3)   ? ContainerRole::init
                               : i == 0 && random.one_in(3) ? ContainerRole::sidecar
                                                            : ContainerRole::app;
    pod.containers.push_back({"c" + std::to_string(i), role, whole_cpus(random.below(6))});
  }
  return pod;
}

// Every CPU is in the shared pool, or owned by one pod, or reserved and in no pool.
void expect_sound(const Policy& policy, const State& state) {
  ASSERT_TRUE(check_owners(policy, state)) << check_owners(policy, state).error().message;
  const CpuSet given = given_cpus(state);
  ASSERT_FALSE(given.overlaps(state.shared));
  ASSERT_FALSE(given.overlaps(policy.reserved));
  const CpuSet all = policy.options.strict_reservation ? policy.layout->cpus - policy.reserved : policy.layout->cpus;
  ASSERT_EQ(given | state.shared, all);
  for (const auto& [owner, cpus] : state.entries) {
    if (policy.options.full_cores) {
      ASSERT_EQ(whole_cores_in(*policy.layout, cpus), cpus)
          << to_string(cpus) << " " << test::describe(policy.layout->topology);
    }
  }
}

// No two containers of the pod that run at one time have a CPU in common.
void expect_own(const PodRequest& pod, const State& state) {
  CpuSet seen;
  for (const ContainerRequest& container : pod.containers) {
    const CpuSet* own = find_entry(state, {pod.uid, container.name});
    if (own != nullptr && container.role != ContainerRole::init) {
      ASSERT_FALSE(own->overlaps(seen)) << to_string(*own);
      seen |= *own;
    }
  }
}

State state_with(const char* shared, const std::map<std::string, const char*>& own) {
  State state;
  state.shared = *parse_cpu_set(shared);
  for (const auto& [pod, cpus] : own) {
    state.entries[{pod, "c"}] = *parse_cpu_set(cpus);
  }
  return state;
}

TEST(Policy, RefusesAStateInWhichTwoPodsOwnACpu) {
  const Layout layout(*find_machine("workstation"));
  const Policy policy = *make_policy(layout, {}, *parse_cpu_set("0"), std::nullopt);
  State state = state_with("0-1,4-15", {{"a", "2-3"}, {"b", "3"}});
  EXPECT_TRUE(check_as_kubelet(policy, state));
  const Result<void> started = start(policy, state);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "CPU 3 belongs to two pods: a and b");
}

TEST(Policy, ReleasesAPodsBudgetWithItsLastContainer) {
  const Layout layout(*find_machine("workstation"));
  Policy policy = *make_policy(layout, {}, *parse_cpu_set("0"), std::nullopt);
  policy.budgets = PodBudgets::honoured;
  State state;
  ASSERT_TRUE(start(policy, state));
  const State before = state;
  const PodRequest pod{.uid = "p",
                       .is_guaranteed = true,
                       .containers = {{"a", ContainerRole::app, whole_cpus(2)}, {"b", ContainerRole::app, {}}},
                       .cpu_budget = whole_cpus(4)};
  ASSERT_TRUE(allocate_pod(policy, state, pod, {}));
  EXPECT_TRUE(remove(state, {"p", "a"}).empty());
  EXPECT_EQ(state.pods.at("p").count(), 4U);
  EXPECT_EQ(remove(state, {"p", "b"}).count(), 4U);
  EXPECT_EQ(state, before);
}

TEST(Policy, ReusesAnInitContainersCpusOnceEvenIfItIsAllocatedAgain) {
  const Layout layout(*find_machine("workstation"));
  const Policy policy = *make_policy(layout, {}, *parse_cpu_set("0"), std::nullopt);
  const PodRequest pod{.uid = "p",
                       .is_guaranteed = true,
                       .containers = {{"i", ContainerRole::init, whole_cpus(4)},
                                      {"a", ContainerRole::app, whole_cpus(2)},
                                      {"b", ContainerRole::app, whole_cpus(2)}}};
  State state;
  ASSERT_TRUE(start(policy, state));
  for (const char* container : {"i", "a", "i", "b"}) {
    ASSERT_TRUE(allocate(policy, state, pod, container, {}));
  }
  expect_own(pod, state);
}

TEST(Policy, KeepsOneOwnerPerCpuThroughRandomAllocationsAndRemovals) {
  test::Random random(2);
  std::uint32_t given = 0;
  std::uint32_t refused = 0;
  for (int round = 0; round < 400; ++round) {
    const Layout layout(test::random_machine(random));
    const CpuSet reserved = layout.cpus - test::random_part(random, layout.cpus, 6);
    Policy policy = *make_policy(layout, random_options(random), reserved, std::nullopt);
    State state;
    if (!start(policy, state)) {
      continue;
    }
    std::vector<std::pair<Owner, CpuSet>> owners;
    for (std::uint32_t number = 0; number < 30; ++number) {
      if (!owners.empty() && random.one_in(3)) {
        const std::size_t at = random.below(std::uint32_t(owners.size()));
        const CpuSet before = state.shared;
        const CpuSet freed = remove(state, owners[at].first);
        ASSERT_EQ(before | freed, state.shared);
        ASSERT_TRUE(owners[at].second.contains(freed));
        owners.erase(owners.begin() + std::ptrdiff_t(at));
      } else {
        const PodRequest pod = random_pod(random, number);
        std::vector<ContainerRequest> order = pod.containers;
        if (random.one_in(3)) {
          // Kubelet may repeat an allocation at any time.
          order.insert(order.begin() + 1 + random.below(std::uint32_t(order.size())), order.front());
        }
        for (const ContainerRequest& container : order) {
          const NumaPreference preference = random_preference(random, layout.topology);
          State again = state;
          const auto cpus = allocate(policy, state, pod, container.name, preference);
          const auto same = allocate(policy, again, pod, container.name, preference);
          ASSERT_EQ(cpus.has_value(), same.has_value());
          ASSERT_EQ(state, again);  // the same request has the same result
          if (cpus && *cpus) {
            ASSERT_EQ((*cpus)->count(), exclusive_cpu_count(pod, container));
            const Owner owner{pod.uid, container.name};
            if (std::ranges::find(owners, owner, &std::pair<Owner, CpuSet>::first) == owners.end()) {
              owners.emplace_back(owner, **cpus);
            }
            ++given;
          }
          expect_own(pod, state);
          refused += cpus ? 0 : 1;
        }
      }
      expect_sound(policy, state);
    }
    for (const auto& [owner, cpus] : owners) {
      remove(state, owner);
    }
    ASSERT_TRUE(given_cpus(state).empty());  // everything allocated was released
  }
  EXPECT_GT(given, 1000U);
  EXPECT_GT(refused, 500U);
}

// A random state, and containers on random CPUs.
struct Chaos {
  State state;
  std::vector<ManagedContainer> managed_containers;
};

Chaos random_chaos(test::Random& random) {
  const CpuSet all = *parse_cpu_set("0-15");
  Chaos chaos;
  chaos.state.shared = all;
  for (std::uint32_t i = 0; i < 1 + random.below(6); ++i) {
    const Owner owner{"pod" + std::to_string(i), "c"};
    if (!random.one_in(3)) {
      const CpuSet own = chaos.state.shared - test::random_part(random, chaos.state.shared, 4);
      if (!own.empty() && own != chaos.state.shared) {
        chaos.state.entries[owner] = own;
        chaos.state.shared -= own;
      }
    }
    ManagedContainer managed{.owner = owner, .id = owner.pod, .present = test::random_part(random, all, 2)};
    if (managed.present->empty()) {
      managed.present = all;
    }
    chaos.managed_containers.push_back(managed);
  }
  // Sometimes each has the CPUs that the next one should have, possibly the shared pool.
  if (random.one_in(2)) {
    for (std::size_t i = 0; i < chaos.managed_containers.size(); ++i) {
      const Owner& next = chaos.managed_containers[(i + 1) % chaos.managed_containers.size()].owner;
      chaos.managed_containers[i].present = cpus_for(chaos.state, next);
    }
  }
  return chaos;
}

ManagedContainer discovered_on(const std::string& pod, const char* cpus, Phase phase = Phase::running) {
  ManagedContainer managed{.owner = {pod, "c"}, .id = pod, .phase = phase, .present = {}};
  if (*cpus != '\0') {
    managed.present = *parse_cpu_set(cpus);
  }
  return managed;
}

std::vector<std::string> writes_of(const Reconciliation& plan) {
  std::vector<std::string> writes;
  for (const Write& write : plan.writes) {
    writes.push_back(write.id + " " + to_string(write.cpus));
  }
  return writes;
}

TEST(Reconciling, WritesContainersWithUnknownCpusetsFirst) {
  const State state = state_with("0-1", {{"a", "4-5"}, {"u", "2-3"}});
  const Reconciliation plan = plan_reconcile(state, {discovered_on("a", "2-3"), discovered_on("u", "")});
  EXPECT_EQ(writes_of(plan), (std::vector<std::string>{"u 0-1", "a 4-5", "u 2-3"}));
}

TEST(Reconciling, AvoidsCpusOfContainersItMayNotWriteTo) {
  const State state = state_with("0-1", {{"a", "4-5"}});
  const Reconciliation plan =
      plan_reconcile(state, {discovered_on("a", "0-3"), discovered_on("b", "4-5", Phase::starting)});
  // "a" is not put on cores that "b" still uses: it waits in the shared pool, and both are reported.
  for (const Write& write : plan.writes) {
    EXPECT_FALSE(write.cpus.overlaps(*parse_cpu_set("4-5"))) << to_string(write.cpus);
  }
  EXPECT_EQ(plan.skipped.size(), 2U);
}

TEST(Reconciling, NeverPutsAContainerOnAnothersCores) {
  test::Random random(3);
  std::uint32_t on_the_way = 0;
  for (int round = 0; round < 4000; ++round) {
    const Chaos chaos = random_chaos(random);
    const Reconciliation plan = plan_reconcile(chaos.state, chaos.managed_containers);
    ASSERT_TRUE(plan.skipped.empty());
    std::map<std::string, CpuSet> now;
    std::map<std::string, CpuSet> then;
    for (const ManagedContainer& managed : chaos.managed_containers) {
      now[managed.id] = *managed.present;
      then[managed.id] = cpus_for(chaos.state, managed.owner);
    }
    for (const Write& write : plan.writes) {
      ASSERT_FALSE(write.cpus.empty());
      ASSERT_NE(write.cpus, now[write.id]) << "a write that changes nothing";
      const CpuSet entered = write.cpus - now[write.id];
      for (const auto& [id, cpus] : then) {
        if (id == write.id) {
          continue;
        }
        const bool is_exclusive = chaos.state.entries.contains({id, "c"});
        ASSERT_FALSE(is_exclusive && entered.overlaps(cpus)) << write.id << " is put on " << id << "'s own CPUs";
        // A container that gets exclusive cores is alone on them.
        if (chaos.state.entries.contains(write.owner)) {
          ASSERT_FALSE((entered & then[write.id]).overlaps(now[id]));
        }
      }
      on_the_way += write.is_intermediate ? 1 : 0;
      now[write.id] = write.cpus;
    }
    ASSERT_EQ(now, then);
    ASSERT_LE(plan.writes.size(), 2 * chaos.managed_containers.size() + 2);
  }
  EXPECT_GT(on_the_way, 100U);
}

// A manager that is killed between two writes is followed by one that plans from what it finds.
TEST(Reconciling, AnyPartOfAPlanIsFinishedByTheNext) {
  test::Random random(5);
  for (int round = 0; round < 300; ++round) {
    Chaos chaos = random_chaos(random);
    const Reconciliation plan = plan_reconcile(chaos.state, chaos.managed_containers);
    for (std::size_t done = 0; done <= plan.writes.size(); ++done) {
      std::vector<ManagedContainer> found = chaos.managed_containers;
      for (const Write& write : plan_reconcile(chaos.state, found).writes) {
        ASSERT_FALSE(write.cpus.empty());
        std::ranges::find(found, write.id, &ManagedContainer::id)->present = write.cpus;
      }
      for (const ManagedContainer& managed : found) {
        ASSERT_EQ(*managed.present, target_of(chaos.state, managed));
      }
      if (done < plan.writes.size()) {
        const Write& write = plan.writes[done];
        std::ranges::find(chaos.managed_containers, write.id, &ManagedContainer::id)->present = write.cpus;
      }
    }
  }
}

TEST(Reconciling, ConfinesAContainerToItsPartOfThePool) {
  const State state = state_with("0-3", {{"a", "4-5"}});
  std::vector<ManagedContainer> managed = {discovered_on("a", "0-5"), discovered_on("b", "0-5")};
  managed[1].confined = *parse_cpu_set("2-7");
  EXPECT_EQ(writes_of(plan_reconcile(state, managed)), (std::vector<std::string>{"a 4-5", "b 2-3"}));
  managed[1].confined = *parse_cpu_set("4-5");  // all of these are another's: the pool
  EXPECT_EQ(writes_of(plan_reconcile(state, managed)), (std::vector<std::string>{"a 4-5", "b 0-3"}));
}

TEST(Reconciling, LeavesAContestedContainerAlone) {
  const State state = state_with("0-1", {{"a", "2-3"}});
  std::vector<ManagedContainer> managed = {discovered_on("a", "0-1"), discovered_on("b", "2-3", Phase::contested)};
  const Reconciliation plan = plan_reconcile(state, managed);
  EXPECT_TRUE(plan.writes.empty());
  EXPECT_EQ(plan.skipped.size(), 2U);
}

}  // namespace
}  // namespace hf::cpu
