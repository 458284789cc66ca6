// What a choice of CPUs keeps to on any machine.
#include <gtest/gtest.h>

#include "core/cpu/machine.h"
#include "core/cpu/policy.h"
#include "core/cpu/take.h"
#include "support/kubelet_rules.h"
#include "support/random_machine.h"

namespace hf::cpu {
namespace {

TEST(Taking, ChoosesLikeKubeletWhereKubeletsChoiceIsValid) {
  test::Random random(1);
  std::uint32_t compared = 0;
  std::uint32_t invalid = 0;
  for (int round = 0; round < 3000; ++round) {
    const Layout layout(test::random_machine(random));
    const CpuSet available = test::random_part(random, layout.cpus, 2 + random.below(8));
    const std::uint32_t count = random.below(available.count() + 2);
    const Packing packing{.order = random.one_in(3) ? CpuOrder::spread : CpuOrder::packed,
                          .caches = random.one_in(2) ? CacheUse::preferred : CacheUse::ignored,
                          .unequal_cores = UnequalCores::as_kubelet};
    const std::uint32_t group = 1 + random.below(2);
    const bool distributed = random.one_in(2);
    const Result<CpuSet> ours = distributed ? take_distributed(layout, available, count, group)
                                            : take_packed(layout, available, count, packing);
    const std::optional<CpuSet> theirs = distributed
                                             ? test::kubelet_distributed(layout.topology, available, count, group)
                                             : test::kubelet_packed(layout.topology, available, count, packing);
    ASSERT_EQ(ours.has_value(), count <= available.count()) << test::describe(layout.topology);
    if (ours) {
      ASSERT_EQ(ours->count(), count) << test::describe(layout.topology);
      ASSERT_TRUE(available.contains(*ours)) << test::describe(layout.topology);
    }
    if (distributed && !layout.has_equal_cores) {  // packed within a NUMA node by our own rules
      continue;
    }
    if (!theirs || theirs->count() != count || !available.contains(*theirs)) {
      invalid += ours ? 1 : 0;
      continue;
    }
    ++compared;
    ASSERT_EQ(to_string(*ours), to_string(*theirs))
        << test::describe(layout.topology) << " free " << to_string(available) << " want " << count
        << (distributed ? " distributed by " + std::to_string(group) : " packed");
  }
  EXPECT_GT(compared, 1700U);
  EXPECT_GT(invalid, 10U);  // otherwise the random machines are too regular to show kubelet's faults
}

CpuSet cpus_of_split_cores(const Layout& layout, const CpuSet& free) { return free - whole_cores_in(layout, free); }

TEST(Taking, TakesWholeCoresBeforeHalvesWhereCoresAreUnequal) {
  test::Random random(2);
  std::uint32_t singles = 0;
  std::uint32_t tried = 0;
  for (int round = 0; round < 6000; ++round) {
    const Layout layout(test::random_machine(random));
    const CpuSet free = test::random_part(random, layout.cpus, 2 + random.below(6));
    const std::uint32_t count = 1 + random.below(6);
    if (layout.has_equal_cores || count > free.count()) {
      continue;
    }
    ++tried;
    const CpuSet chosen = *take_packed(layout, free, count, {});
    const CpuSet halves = cpus_of_split_cores(layout, free);
    const std::uint32_t from_halves = (chosen & halves).count();
    if (count == 1 && !halves.empty() && layout.numa_nodes.size() == 1) {
      ++singles;
      EXPECT_EQ(from_halves, 1U) << test::describe(layout.topology) << " free " << to_string(free);
    } else if (from_halves > 1) {
      const CpuSet left = whole_cores_in(layout, free - chosen);
      for (std::uint32_t core = 0; core < layout.cores.size(); ++core) {
        const Index cpu = layout.threads_of_cores.parts(Index(core))[0].cpus[0];
        EXPECT_FALSE(left.contains(cpu) && layout.cores.cpus_in(Index(core)) <= from_halves)
            << test::describe(layout.topology) << " free " << to_string(free) << " chosen " << to_string(chosen);
      }
    }
  }
  EXPECT_GT(tried, 1000U);
  EXPECT_GT(singles, 20U);
}

TEST(Taking, TakesOneWholeCoreOfAMachineWithThreadsOffline) {
  std::vector<Cpu> rows;
  for (std::uint32_t cpu = 0; cpu < 128; ++cpu) {
    if (cpu != 97 && cpu != 99 && cpu != 121) {
      rows.push_back(
          {.id = cpu, .core = cpu % 64, .socket = cpu % 64 / 32, .numa = {cpu % 64 / 32}, .cache = cpu % 64 / 32});
    }
  }
  const Layout layout(*make_topology(std::move(rows)));
  const CpuSet free = *parse_cpu_set("2,33,35,38,46-47,57,66,91,96,101,122");
  EXPECT_EQ(to_string(*take_packed(layout, free, 2, {})), "2,66");
  EXPECT_EQ(to_string(*take_packed(layout, free, 1, {})), "91");  // of a core that is split already
  EXPECT_EQ(to_string(*take_packed(layout, free, 3, {})), "2,66,91");
}

TEST(Taking, SurvivesAnInconsistentTopology) {
  // A thousand sockets in one NUMA node, and counters that say otherwise.
  std::vector<Cpu> rows;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    rows.push_back({.id = i, .core = i, .socket = i, .numa = {0}, .cache = i});
  }
  Topology topology = *make_topology(std::move(rows));
  topology.counters.sockets = 1;
  topology.counters.numa_nodes = 2;
  const Layout layout(std::move(topology));
  for (const CacheUse caches : {CacheUse::ignored, CacheUse::preferred}) {
    const Result<CpuSet> cpus = take_packed(layout, layout.cpus, 3, {.order = CpuOrder::packed, .caches = caches});
    ASSERT_TRUE(cpus);
    EXPECT_EQ(cpus->count(), 3U);
  }
}

// Faults that were observed in kubelet.
TEST(Taking, TakesTheNodesWhoseBalanceWasBest) {
  const Layout layout(
      build({.sockets = 2, .nodes_per_socket = 4, .caches_per_node = 1, .cores_per_cache = 16, .threads = 2}));
  EXPECT_EQ(to_string(*take_distributed(layout, layout.cpus, 128, 1)), "0-63,128-191");
}

TEST(Taking, TerminatesWhereKubeletLoopsForever) {
  const Layout layout(
      build({.sockets = 2, .nodes_per_socket = 2, .caches_per_node = 1, .cores_per_cache = 10, .threads = 2}));
  const Options options = *parse_options({{"full-pcpus-only", "true"}, {"distribute-cpus-across-numa", "true"}});
  const Policy policy = *make_policy(layout, options, *parse_cpu_set("0,10,20,30"), std::nullopt);
  State state;
  ASSERT_TRUE(start(policy, state));
  const PodRequest pod{.uid = "p", .is_guaranteed = true, .containers = {{"c", ContainerRole::app, whole_cpus(70)}}};
  const auto given = allocate(policy, state, pod, "c", {});
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ((*given)->count(), 70U);
  EXPECT_EQ(whole_cores_in(layout, **given), **given);
}

TEST(Taking, SplitsNoCoreUnderANarrowHint) {
  const Layout layout(
      build({.sockets = 2, .nodes_per_socket = 2, .caches_per_node = 1, .cores_per_cache = 10, .threads = 2}));
  const Options options = *parse_options({{"full-pcpus-only", "true"}});
  const Policy policy = *make_policy(layout, options, *parse_cpu_set("0"), std::nullopt);
  const Result<CpuSet> cpus = choose(policy, layout.cpus - policy.reserved, 20, {.hint = {{NumaId{0}}}});
  ASSERT_TRUE(cpus) << cpus.error().message;
  EXPECT_EQ(to_string(*cpus), "1-10,41-50");  // nine cores of the hinted node, and a whole one of the next
}

TEST(Taking, SplitsNoCoreOfAHybridMachine) {
  // Two cores of two threads and two of one: three CPUs are a big and a small core, never half a big one.
  const Layout layout(*make_topology({{0, 0, 0, {0}, 0},
                                      {1, 0, 0, {0}, 0},
                                      {2, 2, 0, {0}, 0},
                                      {3, 2, 0, {0}, 0},
                                      {4, 4, 0, {0}, 0},
                                      {5, 5, 0, {0}, 0}}));
  const Policy policy = *make_policy(layout, *parse_options({{"full-pcpus-only", "true"}}), {}, std::nullopt);
  for (std::uint32_t count = 0; count <= 6; ++count) {
    const Result<CpuSet> cpus = choose(policy, layout.cpus, count, {});
    ASSERT_TRUE(cpus) << count << cpus.error().message;
    EXPECT_EQ(cpus->count(), count);
    EXPECT_EQ(whole_cores_in(layout, *cpus), *cpus) << to_string(*cpus);
  }
  EXPECT_FALSE(choose(policy, *parse_cpu_set("0-3"), 3, {}));
}

}  // namespace
}  // namespace hf::cpu
