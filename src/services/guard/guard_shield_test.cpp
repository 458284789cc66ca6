#include "services/guard/guard_test.h"

namespace hf::guard {
namespace {

TEST_F(GuardTest, KeepsAnOwedDeviceOpenWhileRulesAreRewritten) {
  attach(own_, {"c 195:0 rw", "c 1:3 rwm"});
  guard_->add(gpu());
  EXPECT_TRUE(shield_.is_on) << shield_.why;
  EXPECT_TRUE(results_.empty()) << "nothing was missing";
  attach(own_, {"c 1:3 rwm"});
  EXPECT_TRUE(can_open("c:195:0:rw")) << "before any event was handled";
  EXPECT_FALSE(can_open("c:195:1:rw"));
  EXPECT_FALSE(can_open("c:195:0:m")) << "not owed";
  send_event(own_);
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_EQ(results_[0].action, Action::shielded);
  EXPECT_TRUE(results_[0].is_shielded);
  EXPECT_EQ(results_[0].held_opens, 1U);
  EXPECT_EQ(results_[0].loss_ns, std::nullopt);
  EXPECT_EQ(results_[0].event.writer.name, "runc");
  EXPECT_TRUE(bpf_.allows(*own_.v2, *device::parse_request("c:195:0:rw"))) << "and the rules were repaired";
}

TEST_F(GuardTest, DoesNotOverruleAGateAddedAboveLater) {
  attach(own_, {"c 195:0 rw"});
  guard_->add(gpu());
  attach(pod_, {"c 1:3 rw"});
  EXPECT_FALSE(can_open("c:195:0:rw")) << "a program attached later runs after the shield";
  send_event(pod_);
  EXPECT_FALSE(shield_.is_on);
  EXPECT_NE(shield_.why.find("/dev/nvidia0"), std::string::npos) << shield_.why;
  attach(own_, {});
  EXPECT_FALSE(can_open("c:195:0:rw"));
}

TEST_F(GuardTest, DoesNotOverruleAProgramThatTheParentHadBefore) {
  attach(pod_, {"c 1:3 rw"});
  attach(own_, {"c 1:3 rw"});
  guard_->add(gpu());
  EXPECT_FALSE(shield_.is_on);
  EXPECT_FALSE(can_open("c:195:0:rw"));
}

TEST_F(GuardTest, ShieldsNeitherASiblingNorANestedCgroup) {
  const kernel::CgroupsOfProcess sibling = *kernel::open_cgroups_at(host_, "/pod/sibling");
  attach(own_, {"c 195:0 rw"});
  attach(sibling, {});
  guard_->add(gpu());
  EXPECT_FALSE(can_open("c:195:0:rw", "/pod/sibling"));
  const kernel::CgroupsOfProcess nested = *kernel::open_cgroups_at(host_, "/pod/c/nested");
  attach(nested, {});
  EXPECT_FALSE(bpf_.allows({&*nested.v2, &*own_.v2, &*pod_.v2}, *device::parse_request("c:195:0:rw")));
}

TEST_F(GuardTest, AShieldOnTheRootDoesNotCoverAContainerWithALowerShield) {
  attach(own_, {"c 195:0 rw"});
  guard_->add(gpu());
  const kernel::Cgroup root = *kernel::open_root(host_, container::Hierarchy::v2);
  shielding_->set_use(container::ShieldUse::with_root);
  guard_->add(guarded({owed_node("/dev/nvidia1", {device::Kind::character, 195, 1})}, 101, "/alone"));
  EXPECT_EQ(bpf_.query(root, kernel::Reach::own)->ids.size(), 1U) << "one on the root as well";
  attach(pod_, {"c 1:3 rw"});
  EXPECT_FALSE(can_open("c:195:0:rw")) << "the root's shield must not overrule the pod's program";
}

TEST_F(GuardTest, RemovesTheEntryOfADeviceThatIsNoLongerOwed) {
  attach(own_, {"c 195:0 rw"});
  guard_->add(gpu());
  guard_->add(guarded({owed_node("/dev/nvidia1", {device::Kind::character, 195, 1})}));
  attach(own_, {});
  EXPECT_FALSE(can_open("c:195:0:rw"));
  EXPECT_TRUE(can_open("c:195:1:rw"));
}

TEST_F(GuardTest, RemovesTheEntryOfADeviceThatIsNoLongerOwedWhileRepairsWait) {
  container::Limits limits;
  limits.burst = 1;
  limits.per_second = 1;
  guard_->set_limits(limits);
  attach(own_, {"c 195:0 rw"});
  guard_->add(gpu());
  for (int i = 0; i < 3; ++i) {
    attach(own_, {});
    send_event(own_);
  }
  ASSERT_TRUE(guard_->visit_waiting(now_)) << "it waits";
  ASSERT_TRUE(can_open("c:195:0:rw"));
  guard_->add(guarded({owed_node("/dev/nvidia1", {device::Kind::character, 195, 1})}));
  attach(own_, {});
  EXPECT_FALSE(can_open("c:195:0:rw"));
}

TEST_F(GuardTest, LeavesNothingBehindWhenTheContainerHasEnded) {
  attach(own_, {"c 195:0 rw"});
  guard_->add(gpu());
  send_event(own_, EventKind::process_gone);
  EXPECT_EQ(guard_->size(), 1U) << "the cgroup still has processes: the one that ended was the runtime's";
  std::ofstream(machine_.root() + "/cg/pod/c/cgroup.procs") << "";
  send_event(own_, EventKind::process_gone);
  EXPECT_EQ(guard_->size(), 0U);
  attach(own_, {});
  EXPECT_FALSE(can_open("c:195:0:rw"));
  guard_->release_unused();
  EXPECT_TRUE(bpf_.query(*pod_.v2, kernel::Reach::own)->ids.empty());
}

TEST_F(GuardTest, ANewDaemonFindsTheShieldAgain) {
  attach(own_, {"c 195:0 rw"});
  guard_->add(gpu());
  const auto before = bpf_.query(*pod_.v2, kernel::Reach::own)->ids;
  attach(own_, {});
  EXPECT_TRUE(can_open("c:195:0:rw")) << "without a daemon";
  open_guard();
  guard_->add(gpu());
  EXPECT_EQ(bpf_.query(*pod_.v2, kernel::Reach::own)->ids, before);
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_EQ(results_[0].action, Action::shielded);
}

TEST_F(GuardTest, ANewVersionReplacesTheOldOneWithoutAGap) {
  attach(own_, {"c 195:0 rw"});
  guard_->add(gpu());
  const auto before = bpf_.query(*pod_.v2, kernel::Reach::own)->ids;
  attach(own_, {});
  bpf_.shield_tag = 2;
  bpf_.before_attach = [this] { EXPECT_TRUE(can_open("c:195:0:rw")); };
  open_guard();
  guard_->add(gpu());
  const auto after = bpf_.query(*pod_.v2, kernel::Reach::own)->ids;
  EXPECT_EQ(after.size(), 1U);
  EXPECT_NE(after, before);
  attach(own_, {});
  EXPECT_TRUE(can_open("c:195:0:rw"));
}

// A program on the parent would replace an overridable one above it for siblings without a program of their own.
TEST_F(GuardTest, AttachesNoShieldBelowAnOverridableProgram) {
  const kernel::Cgroup root = *kernel::open_root(host_, container::Hierarchy::v2);
  const kernel::Program overridable = *bpf_.load(code_for({"c 195:0 rw", "c 1:3 rw"}));
  ASSERT_TRUE(bpf_.attach(root, overridable, kernel::AttachAlone{container::Attachment::overridable, 0}));
  attach(own_, {"c 195:0 rw"});
  guard_->add(gpu());
  EXPECT_FALSE(shield_.is_on);
  EXPECT_FALSE(shield_.why.empty());
  EXPECT_TRUE(bpf_.query(*pod_.v2, kernel::Reach::own)->ids.empty());
}

TEST_F(GuardTest, DetachesTheShieldWhenAnOverridableProgramIsAttachedAbove) {
  attach(own_, {"c 195:0 rw"});
  guard_->add(gpu());
  ASSERT_TRUE(shield_.is_on);
  const kernel::Cgroup root = *kernel::open_root(host_, container::Hierarchy::v2);
  const kernel::Program overridable = *bpf_.load(code_for({"c 195:0 rw", "c 1:3 rw"}));
  ASSERT_TRUE(bpf_.attach(root, overridable, kernel::AttachAlone{container::Attachment::overridable, 0}));
  send_event(own_);
  EXPECT_FALSE(shield_.is_on);
  EXPECT_TRUE(bpf_.query(*pod_.v2, kernel::Reach::own)->ids.empty());
}

TEST_F(GuardTest, AContainerDirectlyBelowTheRootIsNotShieldedByDefault) {
  guard_->add(guarded({owed_node("/dev/nvidia1", {device::Kind::character, 195, 1})}, 101, "/alone"));
  EXPECT_FALSE(shield_.is_on);
  EXPECT_NE(shield_.why.find("root"), std::string::npos) << shield_.why;
}

}  // namespace
}  // namespace hf::guard
