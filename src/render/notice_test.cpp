#include "render/notice.h"

#include <gtest/gtest.h>

#include "core/report/snapshot.h"
#include "render/snapshot.h"

namespace hf::notice {
namespace {

using container::State;

const container::Pod kPod{"3f0e1b6a-4d2c-4c1f-9a51-0d5b1c2e7f10", "trainer-0", "ml", "main", true};

PodEvent event_with(Reason reason) {
  PodEvent event;
  event.pod = kPod;
  event.reason = reason;
  event.devices = {"/dev/nvidia0", "/dev/nvidiactl"};
  event.writer = {container::Pid{90}, "systemctl", "", "systemctl daemon-reload --secret", {}, "systemd", {}, ""};
  return event;
}

TEST(Message, SaysWhatWhoAndHowLong) {
  PodEvent restored = event_with(Reason::device_restored);
  restored.duration = 3'200'000;
  PodEvent lost = event_with(Reason::device_lost);
  lost.detail = "a gate above refuses it";
  PodEvent risk = event_with(Reason::device_at_risk);
  risk.detail = "HF-201: systemd does not know its GPU";
  const std::vector<std::pair<PodEvent, std::string>> table = {
      {restored,
       "container main can use /dev/nvidia0, /dev/nvidiactl again after 3.2 ms: its device rules were rewritten by "
       "systemctl (pid 90) for systemd"},
      {lost,
       "container main cannot use /dev/nvidia0, /dev/nvidiactl: its device rules were rewritten by systemctl (pid 90) "
       "for systemd; a gate above refuses it"},
      {event_with(Reason::device_shielded),
       "container main kept /dev/nvidia0, /dev/nvidiactl open: its device rules were rewritten by systemctl (pid 90) "
       "for systemd"},
      {risk, "container main may lose devices at the next reload or update: HF-201: systemd does not know its GPU"},
      {event_with(Reason::device_set_completed),
       "container main got /dev/nvidia0, /dev/nvidiactl, which its runtime had not given it"},
      {event_with(Reason::device_request_ignored),
       "container main asks for devices that no trusted source gives it, and runs without them: request them in the "
       "pod's resources"},
  };
  for (const auto& [event, text] : table) {
    EXPECT_EQ(render_message(event), text);
  }
}

TEST(Message, IsOneShortLineWhateverTheNamesAre) {
  PodEvent event = event_with(Reason::device_lost);
  event.devices.assign(1000, "/dev/x\n\x1b[31m");
  event.writer.name = std::string(5000, '\xff');
  event.detail = std::string(5000, 'x');
  const std::string text = render_message(event);
  EXPECT_LE(text.size(), 1024U);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(HostState, IsReadBackFromASnapshot) {
  report::Snapshot snapshot;
  snapshot.at = 1'794'719'648'123;
  report::ContainerStatus lost;
  container::Container container;
  container.id.value = "abc";
  container.pod = kPod;
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

  const Result<HostState> state = parse_host_state(render_json(snapshot));
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->at, snapshot.at);
  EXPECT_EQ(state->why_blind, "");
  ASSERT_EQ(state->containers.size(), 2U) << "those that are owed something, or ask for something";
  EXPECT_EQ(state->containers[1].id, "asks");
  EXPECT_EQ(state->containers[1].state, State::not_owed);
  const ContainerState& it = state->containers[0];
  EXPECT_EQ(it.id, "abc");
  EXPECT_EQ(it.state, State::lost);
  ASSERT_TRUE(it.pod);
  EXPECT_TRUE(is_addressable(*it.pod));
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
    const Result<HostState> state = parse_host_state(text);
    ASSERT_FALSE(state) << text;
    EXPECT_EQ(state.error().message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace hf::notice
