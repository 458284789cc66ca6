#include "core/container/guard/drift.h"

#include <gtest/gtest.h>

#include "core/bpf/analyse.h"

namespace hf::container {
namespace {

using device::Access;
using device::Device;
using device::Kind;
using device::Table;

Table table(std::initializer_list<const char*> lines) {
  device::RuleSet rules;
  for (const char* line : lines) {
    rules.push_back(*device::parse_rule(line));
  }
  return Table::of_rules(rules);
}

Gate program(std::uint32_t id, const Table& meaning, bool is_own = true) {
  Gate gate;
  gate.where = is_own ? "/cg/pod/c" : "/cg/pod";
  gate.is_own = is_own;
  gate.program = AttachedProgram{ProgramId{id}, {}, {}, {}, Attachment::several, {}};
  gate.meaning = meaning;
  return gate;
}

Entitlement owed(std::initializer_list<std::uint32_t> minors) {
  Entitlement entitlement;
  for (const std::uint32_t minor : minors) {
    OwedNode node;
    node.path = "/dev/nvidia" + std::to_string(minor);
    node.device = Device{Kind::character, 195, minor};
    node.access = Access::read | Access::write;
    entitlement.nodes.push_back(node);
  }
  return entitlement;
}

TEST(Drift, ListsOwedDevicesThatTheRulesRefuse) {
  const Observed observed{{program(1, table({"c 1:3 rw", "c 195:0 rw"}))}, {}, {}};
  EXPECT_TRUE(compare(owed({0}), observed).is_none());
  const Drift drift = compare(owed({0, 1}), observed);
  EXPECT_EQ(drift.denied, std::vector<std::string>{"/dev/nvidia1"});
  ASSERT_EQ(drift.missing.size(), 1U);
  EXPECT_EQ(to_string(drift.missing[0]), "c 195:1 rw");
}

TEST(Drift, NamesTheRefusingGateAboveAndPlansNoRuleForIt) {
  const Observed observed{
      {program(1, table({"c 1:3 rw"})), program(2, table({"c 1:3 rw", "c 195:1 rw"}), false)}, {}, {}};
  const Drift drift = compare(owed({0, 1}), observed);
  EXPECT_EQ(drift.denied.size(), 2U);
  ASSERT_EQ(drift.above.size(), 1U);
  EXPECT_NE(drift.above[0].find("/cg/pod"), std::string::npos) << drift.above[0];
  ASSERT_EQ(drift.missing.size(), 1U);
  EXPECT_EQ(to_string(drift.missing[0]), "c 195:1 rw");
}

TEST(Drift, IgnoresADeviceWithoutDriver) {
  Entitlement entitlement = owed({0});
  entitlement.nodes[0].device.reset();
  const Observed observed{{program(1, table({"c 1:3 rw"}))}, {}, {}};
  EXPECT_TRUE(compare(entitlement, observed).is_none());
}

TEST(Repair, AddsOnlyWhatIsOwedToTheMeaningOfTheProgram) {
  const Table found = table({"c 1:3 rw", "c 195:7 r"});
  const Observed observed{{program(1, found)}, {}, {}};
  const Repair repair = plan_repair(observed, compare(owed({0}), observed));
  ASSERT_EQ(repair.plan.steps.size(), 1U);
  const auto& replace = std::get<ReplaceProgram>(repair.plan.steps[0]);
  EXPECT_EQ(replace.old, ProgramId{1});
  EXPECT_EQ(*bpf::analyse(replace.code), found | table({"c 195:0 rw"}));
}

TEST(Repair, RestoresTheOthersWhereAListAboveRefusesOne) {
  Observed observed;
  Gate gate;
  gate.hierarchy = Hierarchy::v1;
  gate.where = "/cg1/c";
  gate.list = *device::parse_v1_list("c 1:3 rwm\n");
  gate.meaning = device::meaning(*gate.list);
  observed.gates.push_back(gate);
  observed.v1_above.push_back({"/cg1", *device::parse_v1_list("c 1:3 rwm\nc 195:1 rwm\n")});
  const Repair repair = plan_repair(observed, compare(owed({0, 1}), observed));
  ASSERT_EQ(repair.plan.steps.size(), 1U);
  EXPECT_NE(to_string(repair.plan.steps[0]).find("c 195:1 rw"), std::string::npos);
  ASSERT_EQ(repair.refused.size(), 1U);
  EXPECT_NE(repair.refused[0].find("c 195:0"), std::string::npos) << repair.refused[0];
}

}  // namespace
}  // namespace hf::container
