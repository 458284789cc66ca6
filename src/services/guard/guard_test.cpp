#include "services/guard/guard_test.h"

namespace hf::guard {
namespace {

TEST_F(GuardTest, HealsWhereTheKernelHasNoShields) {
  bpf_.has_shields = false;
  open_guard();
  attach(own_, {"c 195:0 rw"});
  guard_->add(gpu());
  EXPECT_FALSE(shield_.is_on);
  EXPECT_FALSE(shield_.why.empty());
  attach(own_, {});
  EXPECT_FALSE(can_open("c:195:0:rw"));
  send_event(own_);
  EXPECT_TRUE(can_open("c:195:0:rw"));
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_EQ(results_[0].action, Action::healed);
  EXPECT_EQ(results_[0].loss_ns, kMillisecond);
}

TEST_F(GuardTest, ANewContainerIsCompletedNotHealed) {
  guard_->set_started(1);
  attach(own_, {"c 1:3 rw"});
  guard_->add(gpu());
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_EQ(results_[0].action, Action::completed);
  EXPECT_EQ(results_[0].loss_ns, std::nullopt);
  EXPECT_TRUE(can_open("c:195:0:rw"));
}

// "docker run --device /dev/nvidia0": no evidence names the helper, so no one took it away, whenever the guard came.
TEST_F(GuardTest, AHelperThatNoEvidenceNamesIsCompletedInAnOlderContainerToo) {
  guard_->set_started(9000);
  attach(own_, {"c 1:3 rw", "c 195:0 rw"});
  guard_->add(gpu_with_helper());
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_EQ(results_[0].action, Action::completed);
  EXPECT_EQ(results_[0].loss_ns, std::nullopt);
  EXPECT_TRUE(can_open("c:511:0:rw"));

  attach(own_, {"c 1:3 rw", "c 195:0 rw"});
  send_event(own_);
  ASSERT_EQ(results_.size(), 2U);
  EXPECT_EQ(results_[1].action, Action::shielded) << "now it was taken away";
}

TEST_F(GuardTest, AHelperWhoseDriverIsLoadedLaterIsCompleted) {
  guard_->set_started(9000);
  attach(own_, {"c 1:3 rw", "c 195:0 rw"});
  guard_->add(gpu());
  ASSERT_TRUE(results_.empty());
  guard_->add(gpu_with_helper());
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_EQ(results_[0].action, Action::completed);
  EXPECT_TRUE(can_open("c:511:0:rw"));
}

TEST_F(GuardTest, AClaimedDeviceOfAnOlderContainerIsHealed) {
  guard_->set_started(9000);
  attach(own_, {"c 1:3 rw"});
  guard_->add(gpu_with_helper());
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_EQ(results_[0].action, Action::healed);
}

// The runtime (here this very process) is alive: its hook may still run.
TEST_F(GuardTest, AContainerThatIsBeingCreatedIsShieldedAndNotRepaired) {
  guard_->set_started(1);
  const auto being_created = std::make_shared<GuardedContainer>(*gpu());
  being_created->creator = {::getpid()};
  attach(own_, {"c 1:3 rw"});
  guard_->add(being_created);
  EXPECT_TRUE(can_open("c:195:0:rw")) << "by the shield";
  EXPECT_FALSE(bpf_.allows(*own_.v2, *device::parse_request("c:195:0:rw")));
  EXPECT_TRUE(results_.empty());
  const std::optional<std::uint64_t> next = guard_->visit_waiting(now_);
  ASSERT_TRUE(next);
  EXPECT_GT(*next, now_);
  send_event(own_);  // another writer: the creation is over
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_EQ(results_[0].action, Action::completed);
  EXPECT_TRUE(bpf_.allows(*own_.v2, *device::parse_request("c:195:0:rw")));
}

// The hook writes one rule after another: a device that a later rule will allow is not lost.
TEST_F(GuardTest, AHookOfTheRuntimeIsPartOfTheCreation) {
  bpf_.has_shields = false;
  open_guard();
  guard_->set_started(1);
  const auto being_created = std::make_shared<GuardedContainer>(*gpu());
  being_created->creator = {::getpid()};
  attach(own_, {});
  guard_->add(being_created);
  Event event;
  event.cgroup = own_.v2->id;
  event.at = now_;
  event.writer.pid = {8};
  event.writer.name = "nvidia-containe";
  event.writer.parents = {{{::getpid()}, "runc"}};
  guard_->act_on(event);
  EXPECT_TRUE(results_.empty());
  EXPECT_FALSE(can_open("c:195:0:rw"));
}

TEST_F(GuardTest, RemembersTheWriterOfACgroupThatWasNotGuardedYet) {
  attach(own_, {"c 1:3 rw"});
  send_event(own_);
  guard_->add(gpu());
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_EQ(results_[0].event.kind, EventKind::attach);
  EXPECT_EQ(results_[0].event.writer.name, "runc");
}

TEST_F(GuardTest, SlowsDownAndReportsItWhenAWriterKeepsTakingTheDevice) {
  container::Limits limits;
  limits.burst = 3;
  limits.per_second = 1;
  guard_->set_limits(limits);
  attach(own_, {"c 195:0 rw"});
  guard_->add(gpu());
  for (int i = 0; i < 4; ++i) {
    attach(own_, {});
    send_event(own_);
  }
  ASSERT_EQ(results_.size(), 4U);
  EXPECT_EQ(results_[3].action, Action::waits);
  attach(own_, {});
  send_event(own_);
  EXPECT_EQ(results_.size(), 4U) << "it waits";
  EXPECT_TRUE(can_open("c:195:0:rw")) << "behind the shield nothing is lost meanwhile";
  const std::optional<std::uint64_t> next = guard_->visit_waiting(now_);
  ASSERT_TRUE(next);
  now_ = *next;
  EXPECT_TRUE(guard_->visit_waiting(now_));
  EXPECT_EQ(results_.size(), 5U);
}

TEST_F(GuardTest, ANewcomerNeverReplacesWhatASurveyFound) {
  attach(own_, {"c 195:0 rw"});
  guard_->add(gpu());
  guard_->add_newcomer(guarded({owed_node("/dev/nvidia1", {device::Kind::character, 195, 1})}));
  attach(own_, {});
  EXPECT_TRUE(can_open("c:195:0:rw"));
  EXPECT_FALSE(can_open("c:195:1:rw"));
}

TEST_F(GuardTest, BlamesAnotherWriterForALossDuringTheCreation) {
  bpf_.has_shields = false;
  open_guard();
  guard_->set_started(1);
  const auto being_created = std::make_shared<GuardedContainer>(*gpu());
  being_created->creator = {::getpid()};
  attach(own_, {"c 195:0 rw"});
  guard_->add(being_created);
  attach(own_, {});
  send_event(own_);
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_EQ(results_[0].action, Action::healed);
  EXPECT_EQ(results_[0].event.writer.name, "runc");
  EXPECT_EQ(results_[0].loss_ns, kMillisecond);
}

// A survey of everything reads each container again; most are owed the same as before.
TEST_F(GuardTest, VisitsContainersThatWereReadAgainWhenThereIsTime) {
  attach(own_, {"c 195:0 rw"});
  const GuardedContainerPtr first = gpu();
  guard_->add(first);
  attach(own_, {});  // unnoticed
  guard_->add(std::make_shared<GuardedContainer>(*first));
  EXPECT_FALSE(guard_->visit_surveyed(now_)) << "no time is left";
  EXPECT_TRUE(results_.empty());
  EXPECT_TRUE(guard_->visit_surveyed(now_ + 1));
  ASSERT_EQ(results_.size(), 1U);
  EXPECT_EQ(results_[0].action, Action::shielded);
}

}  // namespace
}  // namespace hf::guard
