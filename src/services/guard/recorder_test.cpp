#include "services/guard/recorder.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "kernel/files/clock.h"
#include "support/fake_host.h"

namespace hf::guard {
namespace {

using container::State;
using report::Finding;
using report::Severity;

class RecorderTest : public testing::Test {
 protected:
  RecorderTest() { open_recorder(); }

  void open_recorder() {
    Callbacks callbacks;
    callbacks.snapshot = [this](std::shared_ptr<const report::Snapshot> snapshot) { latest_ = std::move(snapshot); };
    callbacks.record = [](const report::BlameRecordPtr&) {};
    callbacks.log = [](const std::string&, bool) {};
    recorder_.emplace(host_, std::move(callbacks), report::Snapshot());
  }

  const report::Snapshot& publish() {
    now_ += 60'000'000'000;  // the oldest snapshot is 30 s old
    recorder_->tick(now_);
    return *latest_;
  }

  static container::Container named(const std::string& id) {
    container::Container made;
    made.id.value = id;
    made.name = id;
    return made;
  }

  // A container that is owed a GPU, which it could open when it was last probed.
  GuardedContainerPtr add_guarded(const std::string& id) {
    auto guarded = std::make_shared<GuardedContainer>();
    guarded->container = named(id);
    container::OwedNode node;
    node.path = "/dev/nvidia0";
    node.device_class = "nvidia";
    guarded->owed = container::Entitlement{{node}, {}};
    container::NodeState seen;
    seen.owed = node;
    auto survey = std::make_shared<Survey>();
    survey->guarded_containers = {guarded};
    recorder_->adopt(survey);
    recorder_->set_view(InsideView{.guarded = guarded, .nodes = {seen}});
    return guarded;
  }

  static VisitResult visit(const GuardedContainerPtr& guarded, const std::vector<std::string>& left) {
    VisitResult result;
    result.guarded = guarded;
    result.is_identified = true;
    result.left.denied = left;
    return result;
  }

  static Finding finding(const std::string& code, Severity severity, const std::string& id) {
    return {code, severity, id, id, "lost it", {}, {}, {}};
  }

  test::FakeHost machine_{
      test::Files{{"proc/self/mountinfo", "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n"}, {"var/lib/", ""}}};
  kernel::Host host_ = machine_.open();
  std::shared_ptr<const report::Snapshot> latest_;
  std::uint64_t now_ = kernel::monotonic_now();
  std::optional<Recorder> recorder_;
};

TEST_F(RecorderTest, ShowsNoContainerAsFineBesideACriticalFinding) {
  add_guarded("web");
  EXPECT_EQ(publish().containers[0].state, State::ok);
  recorder_->set_findings({finding("HF-122", Severity::critical, "web")}, kernel::monotonic_now());
  EXPECT_EQ(publish().containers[0].state, State::partial);
  EXPECT_EQ(publish().containers[0].codes, std::vector<std::string>{"HF-122"});
}

TEST_F(RecorderTest, ShowsFindingsOfContainersThatAreOwedNothing) {
  auto survey = std::make_shared<Survey>();
  survey->others.emplace_back().container = named("job");
  recorder_->adopt(survey);
  EXPECT_EQ(publish().containers[0].state, State::not_owed);
  recorder_->set_findings({finding("HF-128", Severity::critical, "job")}, kernel::monotonic_now());
  EXPECT_EQ(publish().containers[0].state, State::lost);
  EXPECT_EQ(publish().containers[0].codes, std::vector<std::string>{"HF-128"});
}

TEST_F(RecorderTest, CountsNoPauseContainersOfPods) {
  auto survey = std::make_shared<Survey>();
  container::Container pause = named("pause");
  pause.is_sandbox = true;
  survey->others.emplace_back().container = pause;
  survey->others.emplace_back().container = named("job");
  recorder_->adopt(survey);
  recorder_->set_findings({finding("HF-129", Severity::warning, "pause")}, 0);
  ASSERT_EQ(publish().containers.size(), 1U);
  EXPECT_EQ(publish().containers[0].container->id.value, "job");
  EXPECT_EQ(publish().findings->size(), 1U) << "it has not ended";
}

TEST_F(RecorderTest, DropsAFindingThatALaterVisitDisproves) {
  const GuardedContainerPtr web = add_guarded("web");
  const std::uint64_t began = kernel::monotonic_now();
  const std::vector<Finding> findings = {finding("HF-101", Severity::critical, "web"),
                                         finding("HF-122", Severity::critical, "web")};
  recorder_->set_findings(findings, began);
  recorder_->record(visit(web, {"/dev/nvidia0"}));
  EXPECT_EQ(publish().findings->size(), 2U) << "it is still refused";
  recorder_->record(visit(web, {}));
  ASSERT_EQ(publish().findings->size(), 1U);
  EXPECT_EQ(publish().findings->front().code, "HF-122") << "the visit says nothing about it";
  recorder_->set_findings(findings, began);
  EXPECT_EQ(publish().findings->size(), 1U) << "a diagnosis from before the visit";
  recorder_->set_findings(findings, kernel::monotonic_now());
  EXPECT_EQ(publish().findings->size(), 2U) << "a diagnosis from after the visit";
}

TEST_F(RecorderTest, KeepsAFindingWhereAVisitCouldSeeNothing) {
  const GuardedContainerPtr web = add_guarded("web");
  recorder_->set_findings({finding("HF-101", Severity::critical, "web")}, kernel::monotonic_now());
  recorder_->record(visit(web, {"/dev/nvidia0"}));
  VisitResult failed = visit(web, {});
  failed.action = report::Action::failed;
  failed.error = "load a program: Cannot allocate memory";
  recorder_->record(failed);
  EXPECT_EQ(publish().findings->size(), 1U);
  EXPECT_EQ(publish().containers[0].state, State::lost);
}

TEST_F(RecorderTest, DropsTheFindingsOfAContainerThatHasEnded) {
  add_guarded("web");
  Finding of_host = finding("HF-301", Severity::warning, "");
  recorder_->set_findings({finding("HF-122", Severity::critical, "web"), of_host}, kernel::monotonic_now());
  auto survey = std::make_shared<Survey>();
  recorder_->adopt(survey);
  EXPECT_EQ(publish().findings->size(), 2U) << "a survey from before the diagnosis";
  survey = std::make_shared<Survey>();
  survey->started_at = kernel::monotonic_now();
  recorder_->adopt(survey);
  ASSERT_EQ(publish().findings->size(), 1U);
  EXPECT_EQ(publish().findings->front().code, "HF-301");
}

TEST_F(RecorderTest, DropsAFindingThatALaterProbeDisproves) {
  const GuardedContainerPtr web = add_guarded("web");
  Finding missing = finding("HF-104", Severity::critical, "web");
  missing.nodes = {"/dev/nvidia0"};
  Finding libraries = finding("HF-105", Severity::critical, "web");
  libraries.nodes = {"/dev/nvidia0"};
  Finding other = finding("HF-104", Severity::critical, "web");
  other.nodes = {"/dev/nvidia0", "/dev/nvidia-uvm"};
  recorder_->set_findings({missing, libraries, other}, kernel::monotonic_now());
  EXPECT_EQ(publish().findings->size(), 3U);
  add_guarded("web");  // probed again: it can open its GPU
  ASSERT_EQ(publish().findings->size(), 2U);
  EXPECT_EQ(publish().findings->front().code, "HF-105") << "its libraries are still missing";
  EXPECT_EQ(publish().findings->back().nodes.size(), 2U) << "nothing is known of the other node";
}

TEST_F(RecorderTest, RemembersWhatItRecordedOfAContainerUntilItHasEnded) {
  const GuardedContainerPtr web = add_guarded("web");
  VisitResult completed = visit(web, {});
  completed.action = report::Action::completed;
  completed.drift.denied = {"/dev/nvidia0"};
  recorder_->record(completed);
  recorder_->flush();
  EXPECT_TRUE(publish().histories.at("web").is_completed);
  auto survey = std::make_shared<Survey>();
  survey->at = kernel::wall_now();
  recorder_->adopt(survey);
  EXPECT_TRUE(publish().histories.contains("web")) << "one survey may miss it";
  survey = std::make_shared<Survey>();
  survey->at = kernel::wall_now() + 3'600'000;
  recorder_->adopt(survey);
  EXPECT_FALSE(publish().histories.contains("web"));
}

TEST_F(RecorderTest, StartsWithTheLatestRecordsOfTheJournal) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can create files that belong to root";
  }
  constexpr std::size_t kMost = 500;
  {
    Result<journal::Journal> journal = journal::Journal::open(host_, "/var/lib/holdfast", 1 << 24);
    ASSERT_TRUE(journal) << journal.error().message;
    for (std::size_t i = 0; i < kMost + 20; ++i) {
      report::BlameRecord record;
      record.container = "web";
      record.id = "web";
      record.action = i == 0 ? report::Action::completed : report::Action::none;
      ASSERT_TRUE(journal->append(record));
    }
  }
  recorder_->open_journal("/var/lib/holdfast", 1 << 24);
  const report::Snapshot& snapshot = publish();
  ASSERT_EQ(snapshot.records.size(), kMost);
  EXPECT_EQ(snapshot.records.front()->number, 21U);
  EXPECT_EQ(snapshot.records.back()->number, kMost + 20);
  EXPECT_TRUE(snapshot.histories.at("web").is_completed) << "as the doctor, which reads the whole journal";
  recorder_->record(visit(add_guarded("web"), {}));
  recorder_->flush();
  EXPECT_EQ(publish().records.back()->number, kMost + 21) << "it counts on";
}

}  // namespace
}  // namespace hf::guard
