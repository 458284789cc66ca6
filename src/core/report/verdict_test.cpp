#include "core/report/verdict.h"

#include <gtest/gtest.h>

namespace hf::report {
namespace {

using container::State;

ContainerStatus in_state(const std::string& name, State state) {
  ContainerStatus status;
  container::Container made;
  made.id.value = "id of " + name;
  made.name = name;
  status.container = std::move(made);
  status.state = state;
  return status;
}

Finding finding(const std::string& code, Severity severity, const std::string& name, const std::string& what,
                const std::string& because = "") {
  return {code, severity,   name.empty() ? "host" : name, name.empty() ? "" : "id of " + name, what, because,
          {},   {"cure it"}};
}

Snapshot with(std::vector<ContainerStatus> containers, std::vector<Finding> findings) {
  Snapshot snapshot;
  snapshot.containers = std::move(containers);
  snapshot.findings = std::move(findings);
  return snapshot;
}

TEST(StateWith, IsNeverGoodBesideACriticalFinding) {
  const Finding critical = finding("HF-122", Severity::critical, "web", "has libraries of another driver version");
  const Finding warning = finding("HF-118", Severity::warning, "web", "has too many programs");
  EXPECT_EQ(state_with(State::ok, {&warning, &critical}), State::partial);
  EXPECT_EQ(state_with(State::at_risk, {&critical}), State::partial);
  EXPECT_EQ(state_with(State::unknown, {&critical}), State::partial);
  EXPECT_EQ(state_with(State::not_owed, {&critical}), State::lost);
}

TEST(StateWith, KeepsWhatTheNodesShowOtherwise) {
  const Finding critical = finding("HF-101", Severity::critical, "web", "lost it");
  const Finding warning = finding("HF-118", Severity::warning, "web", "has too many programs");
  EXPECT_EQ(state_with(State::stale, {&critical}), State::stale);
  EXPECT_EQ(state_with(State::ok, {&warning}), State::ok);
  EXPECT_EQ(state_with(State::not_owed, {}), State::not_owed);
}

TEST(VerdictOf, IsCriticalWhereverOneFindingIs) {
  for (const State state :
       {State::ok, State::at_risk, State::partial, State::stale, State::lost, State::not_owed, State::unknown}) {
    const Snapshot snapshot = with({in_state("web", state), in_state("db", State::ok)},
                                   {finding("HF-122", Severity::critical, "web", "has other libraries")});
    EXPECT_EQ(verdict_of(snapshot).level, Level::critical) << to_string(state);
  }
  const Snapshot of_host = with({}, {finding("HF-301", Severity::critical, "", "the NVIDIA driver is not loaded")});
  EXPECT_EQ(verdict_of(of_host).level, Level::critical);
  EXPECT_EQ(verdict_of(of_host).headline, "The NVIDIA driver is not loaded");
}

TEST(VerdictOf, NamesTheContainerTheDeviceAndTheCure) {
  const Verdict verdict = verdict_of(
      with({in_state("train", State::lost), in_state("other", State::lost), in_state("soon", State::at_risk),
            in_state("web", State::ok), in_state("job", State::not_owed)},
           {finding("HF-101", Severity::critical, "train", "lost the right to open /dev/nvidia0", "systemd did it")}));
  EXPECT_EQ(verdict.headline, "train lost the right to open /dev/nvidia0");
  EXPECT_EQ(verdict.because, "systemd did it");
  EXPECT_EQ(verdict.code, "HF-101");
  EXPECT_EQ(verdict.container, "id of train");
  EXPECT_EQ(verdict.cure, std::vector<std::string>{"cure it"});
  EXPECT_EQ(verdict.rest, "1 more container lacks something, 1 at risk, 1 fine, 1 asks for nothing");
}

TEST(VerdictOf, SaysWhetherOneOfTheCuresIsEnough) {
  Finding above = finding("HF-103", Severity::critical, "train", "cannot open /dev/nvidia0");
  EXPECT_FALSE(verdict_of(with({}, {above})).needs_all_cures);
  above.needs_all_cures = true;
  EXPECT_TRUE(verdict_of(with({}, {above})).needs_all_cures);
}

TEST(VerdictOf, IsCriticalForALossThatTheDoctorHasNotExaminedYet) {
  ContainerStatus status = in_state("a name", State::lost);
  container::OwedNode owed;
  owed.path = "/dev/nvidia0";
  container::NodeState node;
  node.owed = owed;
  node.diagnosis = {container::AccessFailure::cgroup_denies, "the device cgroup denies it"};
  status.nodes = std::vector{node};
  const Verdict verdict = verdict_of(with({status}, {}));
  EXPECT_EQ(verdict.level, Level::critical);
  EXPECT_EQ(verdict.headline, "a name cannot use /dev/nvidia0");
  EXPECT_EQ(verdict.because, "the device cgroup denies it");
  EXPECT_EQ(verdict.cure, std::vector<std::string>{"holdfast heal 'a name'"});
}

TEST(VerdictOf, IsTheDoctorsWhereItHasExaminedWhatIsMissing) {
  ContainerStatus status = in_state("train", State::partial);
  container::OwedNode owed;
  owed.path = "/dev/nvidia-uvm-tools";
  container::NodeState node;
  node.owed = owed;
  node.diagnosis = {container::AccessFailure::missing, "it is not there"};
  status.nodes = std::vector{node};
  Finding helper = finding("HF-104", Severity::warning, "train", "lacks the node /dev/nvidia-uvm-tools");
  EXPECT_EQ(verdict_of(with({status}, {helper})).level, Level::critical) << "that finding is about other nodes";
  helper.nodes = {"/dev/nvidia-uvm-tools"};
  const Finding other = finding("HF-307", Severity::warning, "", "another warning");
  const Verdict verdict = verdict_of(with({status}, {other, helper}));
  EXPECT_EQ(verdict.level, Level::warning);
  EXPECT_EQ(verdict.code, "HF-104");
  EXPECT_EQ(verdict.headline, "train lacks the node /dev/nvidia-uvm-tools");
  EXPECT_EQ(verdict.rest, "");
}

TEST(VerdictOf, WarnsOfRisks) {
  const std::vector<Finding> risk = {finding("HF-201", Severity::warning, "web", "loses /dev/nvidia0 at a reload")};
  EXPECT_EQ(verdict_of(with({in_state("web", State::at_risk)}, risk)).headline, "web loses /dev/nvidia0 at a reload");
  EXPECT_EQ(verdict_of(with({in_state("web", State::at_risk)}, {})).headline, "1 container is at risk");
  EXPECT_EQ(verdict_of(with({in_state("web", State::unknown)}, {})).level, Level::warning);
}

TEST(VerdictOf, IsGoodBesideNotes) {
  const Verdict verdict = verdict_of(with({in_state("web", State::ok), in_state("job", State::not_owed)},
                                          {finding("HF-127", Severity::note, "web", "has other nodes")}));
  EXPECT_EQ(verdict.level, Level::good);
  EXPECT_EQ(verdict.headline, "All is fine");
  EXPECT_EQ(verdict.rest, "1 fine, 1 asks for nothing");
}

TEST(VerdictOf, SaysThatThereIsNoContainer) {
  const Verdict verdict = verdict_of(with({}, {}));
  EXPECT_EQ(verdict.level, Level::good);
  EXPECT_EQ(verdict.because, "no container runs here");
  EXPECT_EQ(verdict.rest, "");
}

TEST(VerdictOf, IsCriticalWhileBlind) {
  Snapshot snapshot = with({in_state("web", State::ok)}, {});
  snapshot.is_blind = true;
  snapshot.why_blind = "read /proc: Permission denied";
  EXPECT_EQ(verdict_of(snapshot).level, Level::critical);
  EXPECT_EQ(verdict_of(snapshot).because, "read /proc: Permission denied");
}

}  // namespace
}  // namespace hf::report
