#include "core/notice/pod_event.h"

#include <gtest/gtest.h>

namespace hf::notice {
namespace {

using report::Action;
using report::BlameRecord;

const container::Pod kPod{"3f0e1b6a-4d2c-4c1f-9a51-0d5b1c2e7f10", "trainer-0", "ml", "main", true};

BlameRecord record_with(Action action) {
  BlameRecord record;
  record.id = "abc";
  record.pod = kPod;
  record.action = action;
  record.devices = {"/dev/nvidia0"};
  record.loss_ns = 3'200'000;
  record.at = 1000;
  return record;
}

TEST(PodEvent, FollowsFromTheActionOfARecord) {
  const std::vector<std::pair<Action, std::optional<Reason>>> table = {
      {Action::none, std::nullopt},
      {Action::observed, Reason::device_lost},
      {Action::healed, Reason::device_restored},
      {Action::failed, Reason::device_lost},
      {Action::waits, Reason::device_lost},
      {Action::hardened, std::nullopt},
      {Action::locked, std::nullopt},
      {Action::recreated, Reason::device_restored},
      {Action::shielded, Reason::device_shielded},
      {Action::completed, Reason::device_set_completed},
  };
  for (const auto& [action, reason] : table) {
    const std::optional<PodEvent> event = event_of(record_with(action));
    ASSERT_EQ(event.has_value(), reason.has_value()) << to_string(action);
    if (event) {
      EXPECT_EQ(event->reason, *reason) << to_string(action);
      EXPECT_EQ(event->pod.uid, kPod.uid);
      EXPECT_EQ(event->duration.has_value(), *reason == Reason::device_restored);
    }
  }
}

TEST(PodEvent, IsNoLossWhileTheShieldHolds) {
  BlameRecord record = record_with(Action::failed);
  record.is_shielded = true;
  EXPECT_EQ(event_of(record)->reason, Reason::device_shielded);
  record = record_with(Action::healed);
  record.devices.clear();  // nothing that is owed was refused
  EXPECT_FALSE(event_of(record));
}

TEST(PodEvent, SaysWhyTheDeviceWasNotRestored) {
  BlameRecord record = record_with(Action::failed);
  record.error = "a gate above the container refuses it";
  EXPECT_EQ(event_of(record)->detail, record.error);
  EXPECT_EQ(event_of(record_with(Action::observed))->detail, "the policy is to observe only");
  record = record_with(Action::healed);
  record.error = "systemd did not answer";
  EXPECT_EQ(event_of(record)->detail, "");
}

TEST(PodEvent, NeedsAPodThatTheEngineNamed) {
  BlameRecord record = record_with(Action::failed);
  record.pod.reset();
  EXPECT_FALSE(event_of(record));
  record.pod = kPod;
  record.pod->is_named_by_cri = false;
  EXPECT_FALSE(event_of(record));
}

TEST(PodEvent, RefusesNamesThatAreNoPartOfAPath) {
  EXPECT_TRUE(is_addressable(kPod));
  for (const std::string& bad :
       {std::string(), std::string("../x"), std::string("a/b"), std::string("A"), std::string("-a"), std::string("a-"),
        std::string("a?b"), std::string("a b"), std::string("a\n"), std::string(254, 'a')}) {
    container::Pod pod = kPod;
    pod.name = bad;
    EXPECT_FALSE(is_addressable(pod)) << bad;
    pod = kPod;
    pod.name_space = bad;
    EXPECT_FALSE(is_addressable(pod)) << bad;
    pod = kPod;
    pod.uid = bad;
    EXPECT_FALSE(is_addressable(pod)) << bad;
  }
  container::Pod pod = kPod;
  pod.name = "web.example-0";
  EXPECT_TRUE(is_addressable(pod));
  pod.name = "a..b";
  EXPECT_FALSE(is_addressable(pod));
  pod = kPod;
  pod.name_space = "a.b";
  EXPECT_FALSE(is_addressable(pod));
}

TEST(PodEvent, WarnsOfLossAndRiskOnly) {
  EXPECT_TRUE(is_warning(Reason::device_lost));
  EXPECT_TRUE(is_warning(Reason::device_at_risk));
  for (const Reason reason : {Reason::device_restored, Reason::device_shielded, Reason::device_set_completed}) {
    EXPECT_FALSE(is_warning(reason)) << to_string(reason);
  }
}

}  // namespace
}  // namespace hf::notice
