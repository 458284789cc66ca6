#include "adapters/node_report/host_state.h"

#include <gtest/gtest.h>

#include "core/notice/pod_event.h"
#include "core/report/snapshot.h"
#include "render/snapshot.h"

namespace hf::node_report {
namespace {

using container::State;

TEST(HostState, IsReadBackFromASnapshot) {
  report::Snapshot snapshot;
  snapshot.at = 1'794'719'648'123;
  report::ContainerStatus lost;
  container::Container container;
  container.id.value = "abc";
  container.pod = {"3f0e1b6a-4d2c-4c1f-9a51-0d5b1c2e7f10", "trainer-0", "ml", "main", true};
  lost.container = container;
  lost.state = State::lost;
  container::OwedNode owed;
  owed.path = "/dev/nvidia0";
  container::NodeState node;
  node.owed = owed;
  node.diagnosis = {container::AccessFailure::cgroup_denies, "refused"};
  lost.nodes = std::vector{node};
  lost.codes = {"HF-104", "HF-101"};
  report::ContainerStatus other;
  other.state = State::not_owed;
  report::ContainerStatus asking;
  container.id.value = "asks";
  asking.container = container;
  asking.state = State::not_owed;
  asking.codes = {"HF-125"};
  snapshot.containers = {lost, other, asking};
  report::Finding finding;
  finding.code = "HF-101";
  finding.severity = report::Severity::critical;
  finding.container = "abc";
  finding.what = "trainer-0/main: lost the right";
  snapshot.findings = std::vector{finding};

  const Result<notice::HostState> state = parse_host_state(render_json(snapshot));
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->at, snapshot.at);
  EXPECT_EQ(state->why_blind, "");
  ASSERT_EQ(state->containers.size(), 2U) << "those that are owed something, or ask for something";
  EXPECT_EQ(state->containers[1].id, "asks");
  EXPECT_EQ(state->containers[1].state, State::not_owed);
  const notice::ContainerState& it = state->containers[0];
  EXPECT_EQ(it.id, "abc");
  EXPECT_EQ(it.state, State::lost);
  ASSERT_TRUE(it.pod);
  EXPECT_TRUE(notice::is_addressable(*it.pod));
  EXPECT_EQ(it.devices, std::vector<std::string>{"/dev/nvidia0"});
  EXPECT_EQ(it.verdict, "HF-101: trainer-0/main: lost the right");
  EXPECT_TRUE(it.is_hosts_fault);
}

TEST(HostState, OfABlindGuardSaysWhy) {
  report::Snapshot snapshot;
  snapshot.at = 1000;
  snapshot.is_blind = true;
  EXPECT_EQ(parse_host_state(render_json(snapshot))->why_blind, "no reason is known");
  snapshot.why_blind = "the survey failed";
  EXPECT_EQ(parse_host_state(render_json(snapshot))->why_blind, "the survey failed");
}

TEST(HostState, IsRefusedInOneLineWhereItIsGarbage) {
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), std::string("{\"containers\": 1"),
        std::string("{\"containers\": [], \"at\": 7}"), std::string(100'000, '[')}) {
    const Result<notice::HostState> state = parse_host_state(text);
    ASSERT_FALSE(state) << text;
    EXPECT_EQ(state.error().message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace hf::node_report
