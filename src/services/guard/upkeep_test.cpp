#include "services/guard/upkeep.h"

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "services/guard/guard_test.h"

namespace hf::guard {
namespace {

using container::Attachment;
using container::Mode;

constexpr const char* kGpu = "c:195:0:rw";

class UpkeepTest : public GuardTest {
 protected:
  // Files with which a cgroup can be frozen, and this process, which writes a note of it.
  UpkeepTest() {
    const std::string self = "proc/" + std::to_string(::getpid());
    for (const auto& [path, text] : test::Files{{"cg/pod/c/cgroup.freeze", "0\n"},
                                                {"cg/pod/c/cgroup.events", "populated 1\nfrozen 1\n"},
                                                {self + "/stat", std::to_string(::getpid()) + kStat}}) {
      const std::filesystem::path file = machine_.root() + "/" + path;
      std::filesystem::create_directories(file.parent_path());
      std::ofstream(file) << text;
    }
    std::filesystem::create_directories(machine_.root() + "/run");
  }

  static container::OwedNode gpu_node() { return owed_node("/dev/nvidia0", {device::Kind::character, 195, 0}); }

  GuardedContainerPtr in_mode(Mode mode) {
    auto made = std::make_shared<GuardedContainer>(*gpu());
    made->mode = mode;
    made->container.unit = "docker-c.scope";
    return made;
  }
  GuardedContainerPtr to_harden(Mode mode) {
    auto made = std::make_shared<GuardedContainer>(*in_mode(mode));
    made->to_harden = {gpu_node()};
    return made;
  }

  std::vector<VisitResult> maintain(const GuardedContainerPtr& guarded, Locks locks = Locks::as_policy_says) {
    Survey survey;
    survey.guarded_containers = {guarded};
    return upkeep_.maintain(survey, locks);
  }
  Attachment attachment() { return bpf_.query(*own_.v2, kernel::Reach::own)->attachment; }

  Upkeep upkeep_{host_, bpf_};
};

TEST_F(UpkeepTest, HardensOnceWhereThePolicyAllowsIt) {
  EXPECT_TRUE(maintain(to_harden(Mode::observe)).empty());
  EXPECT_TRUE(maintain(in_mode(Mode::harden)).empty()) << "its unit lists all";
  const std::vector<VisitResult> results = maintain(to_harden(Mode::harden));
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0].is_upkeep);
  EXPECT_EQ(results[0].action, Action::hardened);
  EXPECT_EQ(results[0].steps, std::vector<std::string>{"told systemd that docker-c.scope may have /dev/nvidia0"});
  EXPECT_EQ(results[0].error, "systemd does not answer");
  EXPECT_TRUE(maintain(to_harden(Mode::harden)).empty()) << "it was tried";
  upkeep_.allow_retries();
  EXPECT_EQ(maintain(to_harden(Mode::harden)).size(), 1U);
}

TEST_F(UpkeepTest, AUnitWhoseContainerHasEndedIsNotChanged) {
  const GuardedContainerPtr ended = to_harden(Mode::harden);
  std::filesystem::remove_all(machine_.root() + "/proc/100");
  EXPECT_TRUE(maintain(ended).empty());
}

TEST_F(UpkeepTest, LocksOnceAndUnlocksWhatItHasLocked) {
  attach(own_, {"c 195:0 rw"});
  EXPECT_TRUE(maintain(in_mode(Mode::heal)).empty());
  EXPECT_TRUE(maintain(in_mode(Mode::lock), Locks::leave).empty()) << "a manual heal";
  EXPECT_EQ(attachment(), Attachment::several);

  const std::vector<VisitResult> locked = maintain(in_mode(Mode::lock));
  ASSERT_EQ(locked.size(), 1U);
  EXPECT_EQ(locked[0].action, Action::locked);
  EXPECT_EQ(locked[0].error, "");
  EXPECT_EQ(attachment(), Attachment::single);
  EXPECT_TRUE(can_open(kGpu));
  EXPECT_TRUE(maintain(in_mode(Mode::lock)).empty());
  EXPECT_TRUE(maintain(in_mode(Mode::observe)).empty());
  EXPECT_EQ(attachment(), Attachment::single);

  const std::vector<VisitResult> unlocked = maintain(in_mode(Mode::heal));
  ASSERT_EQ(unlocked.size(), 1U);
  EXPECT_EQ(unlocked[0].action, Action::none);
  EXPECT_EQ(unlocked[0].error, "");
  EXPECT_EQ(attachment(), Attachment::several);
  EXPECT_TRUE(can_open(kGpu));
}

TEST_F(UpkeepTest, ALockThatFailsIsTriedAgainOnlyWhereRetriesAreAllowed) {
  attach(own_, {"c 195:0 rw"});
  attach(*kernel::open_cgroups_at(host_, "/pod/c/nested"), {"c 195:0 rw"});
  const std::vector<VisitResult> results = maintain(in_mode(Mode::lock));
  ASSERT_EQ(results.size(), 1U);
  EXPECT_NE(results[0].error.find("below has programs of its own"), std::string::npos) << results[0].error;
  EXPECT_EQ(attachment(), Attachment::several);
  EXPECT_TRUE(maintain(in_mode(Mode::lock)).empty());
  upkeep_.allow_retries();
  EXPECT_EQ(maintain(in_mode(Mode::lock)).size(), 1U);
}

TEST_F(UpkeepTest, AProgramThatAnotherHasAttachedAloneStays) {
  bpf_.add(*pod_.v2, code_for({"c 195:0 rw"}), "another", 0);
  const container::ProgramId id = bpf_.query(*pod_.v2, kernel::Reach::own)->ids.front();
  ASSERT_TRUE(bpf_.attach(*own_.v2, *bpf_.open(id), kernel::AttachAlone{}));
  EXPECT_TRUE(maintain(in_mode(Mode::heal)).empty());
  EXPECT_EQ(attachment(), Attachment::single);
}

TEST_F(UpkeepTest, RecreatesANodeOnceWhereThatHelps) {
  container::NodeState missing;
  missing.owed = gpu_node();
  missing.diagnosis = {container::AccessFailure::missing, "there is no node"};
  container::NodeState denied = missing;
  denied.diagnosis.failure = container::AccessFailure::cgroup_denies;
  container::NodeState not_healed = missing;
  not_healed.owed = owed_node("/dev/nvidia1", {device::Kind::character, 195, 1});
  const InsideView view{in_mode(Mode::heal), {denied, not_healed, missing}, false};
  std::vector<VisitResult> results;
  upkeep_.recreate_nodes(view, results);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].action, Action::recreated);
  EXPECT_EQ(results[0].steps, std::vector<std::string>{"created /dev/nvidia0 again as c 195:0: there is no node"});
  EXPECT_NE(results[0].error, "") << "the container of this test has no mount namespace";
  upkeep_.recreate_nodes(view, results);
  EXPECT_EQ(results.size(), 1U) << "it was tried";
}

}  // namespace
}  // namespace hf::guard
