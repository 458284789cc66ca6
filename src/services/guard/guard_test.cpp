#include "services/guard/guard.h"

#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include "core/bpf/generate.h"
#include "support/fake_bpf.h"
#include "support/fake_host.h"

namespace hf::guard {
namespace {

using container::Event;
using container::EventKind;
using device::Table;
using report::Action;

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr const char* kStat = " (app) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5000 0 0\n";

bpf::Code code_for(std::initializer_list<const char*> lines) {
  device::RuleSet rules;
  for (const char* line : lines) {
    rules.push_back(*device::parse_rule(line));
  }
  return *bpf::generate(Table::of_rules(rules));
}

class GuardTest : public testing::Test {
 protected:
  GuardTest() { open_guard(); }

  // Opens what a new daemon opens, on the same kernel.
  void open_guard() {
    guard_.reset();
    filters_.emplace(host_, bpf_);
    Result<kernel::Shield> shield = kernel::Shield::open(host_, *filters_);
    shielding_.emplace(shield ? std::optional(*std::move(shield)) : std::nullopt, shield ? "" : shield.error().message);
    Guard::Callbacks callbacks;
    callbacks.report_visit = [this](VisitResult result) { results_.push_back(std::move(result)); };
    callbacks.report_shield = [this](const ShieldReport& report) { shield_ = report.state; };
    callbacks.watch = [](const auto&, const auto&) { return std::nullopt; };
    callbacks.unwatch = [](const auto&) {};
    callbacks.clock = [this] { return now_; };
    guard_.emplace(*filters_, *shielding_, std::move(callbacks));
  }

  static container::OwedNode owed_node(const char* path, device::Device device) {
    container::OwedNode node;
    node.path = path;
    node.device = device;
    node.device_class = "nvidia";
    node.access = device::Access::read | device::Access::write;
    return node;
  }

  GuardedContainerPtr guarded(std::vector<container::OwedNode> nodes, std::int32_t pid = 100,
                              const char* cgroup = "/pod/c") {
    auto guarded = std::make_shared<GuardedContainer>();
    guarded->container.id.value = cgroup;
    guarded->container.init = {pid};
    guarded->container.started_ticks = 5000;
    guarded->container.cgroup = cgroup;
    guarded->container.v2 = cgroup;
    container::Entitlement owed;
    owed.nodes = std::move(nodes);
    guarded->owed = owed;
    guarded->healed = guarded->owed;
    guarded->handle =
        std::make_shared<const kernel::ContainerHandle>(*kernel::ContainerHandle::open(host_, guarded->container));
    return guarded;
  }
  GuardedContainerPtr gpu() { return guarded({owed_node("/dev/nvidia0", {device::Kind::character, 195, 0})}); }

  bool can_open(const char* question, const char* cgroup = "/pod/c") {
    const kernel::CgroupsOfProcess own = *kernel::open_cgroups_at(host_, cgroup);
    const kernel::Cgroup parent = *kernel::open_parent(*own.v2);
    const kernel::Cgroup root = *kernel::open_root(host_, container::Hierarchy::v2);
    return bpf_.allows({&*own.v2, &parent, &root}, *device::parse_request(question));
  }

  void attach(const kernel::CgroupsOfProcess& cgroups, std::initializer_list<const char*> lines) {
    bpf_.add(*cgroups.v2, code_for(lines), "", 0);
  }
  void send_event(const kernel::CgroupsOfProcess& cgroups, EventKind kind = EventKind::attach) {
    Event event;
    event.kind = kind;
    event.cgroup = cgroups.v2->id;
    event.at = now_;
    event.writer.pid = {7};
    event.writer.name = "runc";
    now_ += kMillisecond;
    guard_->handle(event);
  }

  test::FakeHost machine_{test::Files{{"proc/self/mountinfo", "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n"},
                                      {"cg/pod/c/cgroup.procs", "100\n"},
                                      {"cg/pod/c/nested/", ""},
                                      {"cg/pod/sibling/", ""},
                                      {"cg/alone/cgroup.procs", "101\n"},
                                      {"proc/100/stat", std::string("100") + kStat},
                                      {"proc/100/cgroup", "0::/pod/c\n"},
                                      {"proc/101/stat", std::string("101") + kStat},
                                      {"proc/101/cgroup", "0::/alone\n"}}};
  kernel::Host host_ = machine_.open();
  test::FakeBpf bpf_;
  kernel::CgroupsOfProcess own_ = *kernel::open_cgroups_at(host_, "/pod/c");
  kernel::CgroupsOfProcess pod_ = *kernel::open_cgroups_at(host_, "/pod");
  std::optional<kernel::Filters> filters_;
  std::optional<Shielding> shielding_;
  std::optional<Guard> guard_;
  std::vector<VisitResult> results_;
  ShieldState shield_;
  std::uint64_t now_ = 1'000 * kMillisecond;
};

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
  guard_->handle(event);
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

// A program on the parent would replace an overridable one above it for siblings without a program of their own.
TEST_F(GuardTest, AttachesNoShieldBelowAnOverridableProgram) {
  const kernel::Cgroup root = *kernel::open_root(host_, container::Hierarchy::v2);
  const kernel::Program overridable = *bpf_.load(code_for({"c 195:0 rw", "c 1:3 rw"}));
  ASSERT_TRUE(bpf_.attach(root, overridable, kernel::Alone{container::Attachment::overridable, 0}));
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
  ASSERT_TRUE(bpf_.attach(root, overridable, kernel::Alone{container::Attachment::overridable, 0}));
  send_event(own_);
  EXPECT_FALSE(shield_.is_on);
  EXPECT_TRUE(bpf_.query(*pod_.v2, kernel::Reach::own)->ids.empty());
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

TEST_F(GuardTest, AContainerDirectlyBelowTheRootIsNotShieldedByDefault) {
  guard_->add(guarded({owed_node("/dev/nvidia1", {device::Kind::character, 195, 1})}, 101, "/alone"));
  EXPECT_FALSE(shield_.is_on);
  EXPECT_NE(shield_.why.find("root"), std::string::npos) << shield_.why;
}

}  // namespace
}  // namespace hf::guard
