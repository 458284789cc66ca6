#include "core/cpu/assign.h"

#include <gtest/gtest.h>

#include "core/cpu/machine.h"

namespace hf::cpu {
namespace {

class Assigning : public testing::Test {
 protected:
  Assigning() { state_ = adapt(policy_, {}); }

  static Tenant tenant(const std::string& name, std::uint32_t count) {
    Tenant tenant{.owner = {name, "c"}, .id = name, .request = std::nullopt};
    if (count > 0) {
      tenant.request.emplace();
      tenant.request->count = count;
    }
    return tenant;
  }
  [[nodiscard]] std::string cpus_of(const std::string& name) const {
    const CpuSet* const own = find_entry(state_, {name, "c"});
    return own == nullptr ? "none" : to_string(*own);
  }
  void assign_all(const std::vector<Tenant>& tenants, Others others = Others::removed) {
    Assigned assigned = assign(policy_, state_, tenants, others);
    state_ = assigned.state;
    refusals_ = assigned.refusals;
  }

  Layout layout_{*find_machine("workstation")};  // 8 cores, 16 CPUs
  Policy policy_ = *make_policy(layout_, {}, *parse_cpu_set("0"), std::nullopt);
  State state_;
  std::vector<Refusal> refusals_;
};

TEST_F(Assigning, ServesThoseThatAsk) {
  assign_all({tenant("a", 2), tenant("b", 0), tenant("c", 2)});
  EXPECT_EQ(cpus_of("a"), "1,9");
  EXPECT_EQ(cpus_of("b"), "none");
  EXPECT_EQ(cpus_of("c"), "2,10");
  EXPECT_EQ(to_string(state_.shared), "0,3-8,11-15");
  EXPECT_TRUE(refusals_.empty());
}

TEST_F(Assigning, KeepsWhatItGave) {
  assign_all({tenant("a", 2), tenant("c", 2)});
  const State before = state_;
  assign_all({tenant("c", 2), tenant("a", 2)});
  EXPECT_EQ(state_.entries, before.entries);
  assign_all({tenant("c", 2)}, Others::kept);
  EXPECT_EQ(state_.entries, before.entries);
  assign_all({tenant("c", 2)});
  EXPECT_EQ(cpus_of("a"), "none");
  EXPECT_EQ(cpus_of("c"), "2,10");
}

TEST_F(Assigning, RefusesWhatDoesNotFitAndTriesAgain) {
  assign_all({tenant("a", 10), tenant("b", 10), tenant("c", 4)});
  ASSERT_EQ(refusals_.size(), 1U);
  EXPECT_EQ(refusals_[0].owner.pod, "b");
  EXPECT_NE(refusals_[0].why.find("not enough cpus available"), std::string::npos);
  EXPECT_NE(cpus_of("c"), "none");
  assign_all({tenant("b", 10), tenant("c", 4)});
  EXPECT_TRUE(refusals_.empty());
  EXPECT_NE(cpus_of("b"), "none");
}

TEST_F(Assigning, ReservedCpusAreNeverGiven) {
  assign_all({tenant("a", 16)});
  EXPECT_EQ(refusals_.size(), 1U);
  assign_all({tenant("a", 15)});
  EXPECT_EQ(cpus_of("a"), "1-15");
  EXPECT_EQ(to_string(state_.shared), "0");
}

TEST_F(Assigning, WhatWasGivenByHandStaysWhateverIsAskedFor) {
  Tenant by_hand = tenant("a", 2);
  CpuRequest one;
  one.count = 1;
  ASSERT_TRUE(assign_one(policy_, state_, by_hand, one));
  by_hand.is_by_hand = true;
  assign_all({by_hand});
  EXPECT_EQ(cpus_of("a"), "8") << "beside the reserved CPU 0";
  assign_all({tenant("a", 2)});
  EXPECT_NE(cpus_of("a"), "8");
}

TEST_F(Assigning, WhatWasReleasedByHandStaysSo) {
  assign_all({tenant("a", 2)});
  release(state_, {"a", "c"});
  assign_all({tenant("a", 2)});
  EXPECT_EQ(cpus_of("a"), "");
  EXPECT_EQ(cpus_for(in_force(state_), {"a", "c"}), layout_.cpus);
  const Tenant again = tenant("a", 4);
  ASSERT_TRUE(assign_one(policy_, state_, again, *again.request));
  EXPECT_EQ(state_.entries.at({"a", "c"}).count(), 4U);
  assign_all({});
  EXPECT_EQ(cpus_of("a"), "none");
}

TEST_F(Assigning, ByHandItChangesNothingWhereItFails) {
  assign_all({tenant("a", 2)});
  const State before = state_;
  const Tenant greedy = tenant("a", 16);
  EXPECT_FALSE(assign_one(policy_, state_, greedy, *greedy.request));
  EXPECT_EQ(state_, before);
}

TEST_F(Assigning, OptionsOfAContainerAreItsOwn) {
  Tenant spread = tenant("a", 2);
  spread.request->options = *parse_options({{"distribute-cpus-across-cores", "true"}});
  assign_all({spread, tenant("b", 2)});
  EXPECT_EQ(cpus_of("a"), "1-2");
  Tenant odd = tenant("c", 3);
  odd.request->options = *parse_options({{"full-pcpus-only", "true"}});
  assign_all({spread, odd});
  ASSERT_EQ(refusals_.size(), 1U);
  EXPECT_NE(refusals_[0].why.find("SMT Alignment Error"), std::string::npos);
}

TEST_F(Assigning, GivesNoneOutsideThoseThatATenantIsConfinedTo) {
  Tenant confined = tenant("a", 2);
  confined.confined = *parse_cpu_set("0,3,11-12");
  assign_all({confined});
  EXPECT_EQ(cpus_of("a"), "3,11");
  EXPECT_EQ(to_string(state_.shared), "0-2,4-10,12-15");
  confined.request->count = 3;
  assign_all({confined});
  EXPECT_EQ(cpus_of("a"), "3,11-12");
  confined.request->count = 4;
  assign_all({confined});
  ASSERT_EQ(refusals_.size(), 1U);
  EXPECT_NE(refusals_[0].why.find("; it is confined to 0,3,11-12"), std::string::npos);
}

TEST_F(Assigning, IsNearTheDevices) {
  const Layout layout(*find_machine("dgx-a100"));
  const Policy policy = *make_policy(layout, {}, *parse_cpu_set("0"), std::nullopt);
  Tenant near = tenant("a", 4);
  near.device_nodes = {NumaId{3}};
  Assigned assigned = assign(policy, adapt(policy, {}), {near}, Others::removed);
  EXPECT_EQ(to_string(assigned.state.entries.at(near.owner)), "48-49,176-177");
  near.request->is_near_devices = false;
  assigned = assign(policy, adapt(policy, {}), {near}, Others::removed);
  EXPECT_EQ(to_string(assigned.state.entries.at(near.owner)), "1-2,129-130");
}

TEST_F(Assigning, CpusThatATenantIsNotAllowedAnyMoreAreReplaced) {
  Tenant owner = tenant("a", 2);
  assign_all({owner});
  EXPECT_EQ(cpus_of("a"), "1,9");
  owner.confined = *parse_cpu_set("2-15");
  assign_all({owner});
  EXPECT_EQ(cpus_of("a"), "8-9");
  owner.confined = *parse_cpu_set("4-7");
  assign_all({owner});
  EXPECT_EQ(cpus_of("a"), "4-5");
  EXPECT_EQ(to_string(state_.shared), "0-3,6-15");
  owner.confined = *parse_cpu_set("0,7");
  assign_all({owner});
  EXPECT_EQ(cpus_of("a"), "none") << "they are reserved, or too few";
  EXPECT_EQ(refusals_.size(), 1U);
  owner.confined = *parse_cpu_set("12");
  owner.is_by_hand = true;
  state_.entries[owner.owner] = *parse_cpu_set("3");
  assign_all({owner});
  EXPECT_EQ(cpus_of("a"), "3") << "given by hand";
}

TEST_F(Assigning, CpusThatGoOfflineAreCompletedWhenTheyComeBack) {
  assign_all({tenant("a", 2), tenant("b", 1)});
  const State before = state_;
  std::vector<Cpu> rows = layout_.topology.cpus;
  std::erase_if(rows, [](const Cpu& cpu) { return cpu.id == 9; });
  const Layout smaller(*make_topology(std::move(rows)));
  const Policy policy = *make_policy(smaller, {}, *parse_cpu_set("0"), std::nullopt);
  State state = adapt(policy, state_);
  EXPECT_EQ(to_string(state.entries.at({"a", "c"})), "1");
  EXPECT_FALSE(state.shared.contains(9));
  state_ = adapt(policy_, state);
  EXPECT_TRUE(state_.shared.contains(9));
  assign_all({tenant("a", 2), tenant("b", 1)});
  EXPECT_EQ(state_.entries, before.entries);
}

}  // namespace
}  // namespace hf::cpu
