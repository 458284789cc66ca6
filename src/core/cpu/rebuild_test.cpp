#include "core/cpu/rebuild.h"

#include <gtest/gtest.h>

#include "core/cpu/machine.h"
#include "core/cpu/simulate.h"

namespace hf::cpu {
namespace {

TEST(Rebuild, RestoresTheStateThatTheCpusetsShow) {
  const Layout layout(build({.sockets = 1, .nodes_per_socket = 1, .caches_per_node = 1, .cores_per_cache = 8}));
  const Policy policy = *make_policy(layout, {}, *parse_cpu_set("0"), std::nullopt);
  const std::vector<ManagedContainer> managed_containers = {
      {.owner = {"a", "c"}, .id = "1", .present = parse_cpu_set("2-3").value()},
      {.owner = {"b", "c"}, .id = "2", .present = parse_cpu_set("0-1,6-7").value()},
      {.owner = {"d", "c"}, .id = "3", .present = parse_cpu_set("0-1,6-7").value()},
      {.owner = {"e", "c"}, .id = "4", .present = parse_cpu_set("4-5").value()},
      {.owner = {"f", "c"}, .id = "5", .present = layout.cpus},
      {.owner = {"g", "c"}, .id = "6", .present = {}},
  };
  const Result<Rebuilt> rebuilt = rebuild(policy, managed_containers);
  ASSERT_TRUE(rebuilt) << rebuilt.error().message;
  EXPECT_EQ(to_string(rebuilt->state.entries.at({"a", "c"})), "2-3");
  EXPECT_EQ(to_string(rebuilt->state.entries.at({"e", "c"})), "4-5");
  EXPECT_EQ(to_string(rebuilt->state.shared), "0-1,6-7");
  EXPECT_EQ(rebuilt->shared.size(), 4U);
}

TEST(Rebuild, NeverAssignsReservedCpus) {
  const Layout layout(build({.sockets = 1, .nodes_per_socket = 1, .caches_per_node = 1, .cores_per_cache = 8}));
  const Policy policy = *make_policy(layout, {}, *parse_cpu_set("0"), std::nullopt);
  const Result<Rebuilt> rebuilt =
      rebuild(policy, {{.owner = {"a", "c"}, .id = "1", .present = parse_cpu_set("0-1").value()}});
  ASSERT_TRUE(rebuilt) << rebuilt.error().message;
  EXPECT_TRUE(rebuilt->state.entries.empty());
  EXPECT_EQ(rebuilt->state.shared, layout.cpus);
}

TEST(Rebuild, DoesNotTakeASharedPoolForExclusiveCpus) {
  const Layout layout(build({.sockets = 1, .nodes_per_socket = 1, .caches_per_node = 1, .cores_per_cache = 9}));
  Policy policy =
      *make_policy(layout, *parse_options({{"strict-cpu-reservation", "true"}}), *parse_cpu_set("0"), std::nullopt);
  const CpuSet pool = *parse_cpu_set("1,4-7");  // CPU 8 came online later
  const ManagedContainer guaranteed{.owner = {"a", "c"}, .id = "1", .present = parse_cpu_set("2-3").value()};
  const Result<Rebuilt> alone =
      rebuild(policy, {guaranteed, {.owner = {"x", "c"}, .id = "2", .present = pool, .can_own = false}});
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(alone->state.entries.size(), 1U);
  EXPECT_EQ(to_string(alone->state.shared), "1,4-8");
  // Two containers of one pod on the same CPUs share them, whatever its class.
  const Result<Rebuilt> rebuilt = rebuild(policy, {guaranteed,
                                                   {.owner = {"x", "c"}, .id = "2", .present = pool},
                                                   {.owner = {"x", "d"}, .id = "3", .present = pool}});
  ASSERT_TRUE(rebuilt) << rebuilt.error().message;
  EXPECT_EQ(rebuilt->state.entries.size(), 1U);
}

TEST(Rebuild, RefusesAnOwnerWithoutAName) {
  const Layout layout(build({.sockets = 1, .nodes_per_socket = 1, .caches_per_node = 1, .cores_per_cache = 8}));
  const Policy policy = *make_policy(layout, {}, *parse_cpu_set("0"), std::nullopt);
  const Result<Rebuilt> nameless =
      rebuild(policy, {{.owner = {"a", ""}, .id = "4f1c", .present = parse_cpu_set("2-3").value()}});
  ASSERT_FALSE(nameless);
  EXPECT_NE(nameless.error().message.find("4f1c"), std::string::npos) << nameless.error().message;
  EXPECT_FALSE(rebuild(policy, {{.owner = {"a", "c"}, .id = "1", .present = parse_cpu_set("2-3").value()},
                                {.owner = {"a", "c"}, .id = "2", .present = parse_cpu_set("4-5").value()}}));
}

TEST(Rebuild, RefusesAnEmptySharedPool) {
  const Layout layout(build({.sockets = 1, .nodes_per_socket = 1, .caches_per_node = 1, .cores_per_cache = 2}));
  const Policy policy = *make_policy(layout, {}, {}, std::nullopt);
  EXPECT_FALSE(rebuild(policy, {{.owner = {"a", "c"}, .id = "1", .present = parse_cpu_set("0").value()},
                                {.owner = {"b", "c"}, .id = "2", .present = parse_cpu_set("1").value()}}));
}

TEST(Simulate, RefusesToRemoveAContainerThatWasNeverAllocated) {
  Scenario scenario;
  scenario.topology = *find_machine("workstation");
  scenario.steps.push_back({.operation = Operation::remove, .container = "c", .pod = {.uid = "p"}});
  const Result<Simulation> simulation = simulate(scenario);
  ASSERT_FALSE(simulation);
  EXPECT_EQ(simulation.error().message, "scenario: op 1: remove of pod p container c: it was never given anything");
}

}  // namespace
}  // namespace hf::cpu
