#include "core/notice/host_state.h"

#include <gtest/gtest.h>

#include "core/notice/condition.h"

namespace hf::notice {
namespace {

using container::State;

constexpr std::uint64_t kSecond = 1'000'000'000;
const container::Pod kPod{"3f0e1b6a-4d2c-4c1f-9a51-0d5b1c2e7f10", "trainer-0", "ml", "main", true};

HostState with(State state) {
  HostState host;
  host.at = 5000;
  host.containers = {{"abc", "trainer-0/main", kPod, state, {"/dev/nvidia0"}, "HF-101: it lost the right to open it"}};
  return host;
}

std::vector<Reason> reasons_of(const std::vector<PodEvent>& events) {
  std::vector<Reason> reasons;
  for (const PodEvent& event : events) {
    reasons.push_back(event.reason);
  }
  return reasons;
}

TEST(StateWatch, ReportsALossOnlyOnceItHasLasted) {
  for (const State state : {State::lost, State::partial, State::stale}) {
    StateWatch watch;
    EXPECT_TRUE(watch.follow(with(state), 100 * kSecond).empty());
    EXPECT_TRUE(watch.lacking().empty());
    EXPECT_TRUE(watch.follow(with(state), 109 * kSecond).empty());
    EXPECT_EQ(reasons_of(watch.follow(with(state), 111 * kSecond)), std::vector{Reason::device_lost});
    EXPECT_EQ(watch.lacking().size(), 1U);
    EXPECT_TRUE(watch.follow(with(state), 200 * kSecond).empty());
    EXPECT_EQ(watch.lacking().size(), 1U);
    const std::vector<PodEvent> events = watch.follow(with(State::ok), 210 * kSecond);
    ASSERT_EQ(reasons_of(events), std::vector{Reason::device_restored});
    EXPECT_EQ(events[0].duration, 110 * kSecond);
    EXPECT_TRUE(watch.lacking().empty());
  }
}

TEST(StateWatch, SaysNothingOfARepairThatWasQuick) {
  StateWatch watch;
  EXPECT_TRUE(watch.follow(with(State::lost), 100 * kSecond).empty());
  EXPECT_TRUE(watch.follow(with(State::ok), 102 * kSecond).empty());
  EXPECT_TRUE(watch.follow(with(State::lost), 109 * kSecond).empty());  // another one, which has just begun
  EXPECT_TRUE(watch.follow(with(State::lost), 112 * kSecond).empty());
}

TEST(StateWatch, DoesNotRepeatWhatARecordHasSaid) {
  StateWatch watch;
  PodEvent lost;
  lost.container = "abc";
  watch.note(lost, 100 * kSecond);
  EXPECT_TRUE(watch.follow(with(State::lost), 101 * kSecond).empty());
  EXPECT_TRUE(watch.follow(with(State::lost), 120 * kSecond).empty());
  EXPECT_EQ(watch.lacking().size(), 1U);
  PodEvent restored = lost;
  restored.reason = Reason::device_restored;
  watch.note(restored, 130 * kSecond);
  EXPECT_TRUE(watch.follow(with(State::ok), 131 * kSecond).empty());
}

TEST(StateWatch, DoesNotTakeAnOldStateForARecovery) {
  StateWatch watch;
  PodEvent lost;
  lost.container = "abc";
  watch.note(lost, 100 * kSecond);
  EXPECT_TRUE(watch.follow(with(State::ok), 101 * kSecond).empty());
  EXPECT_EQ(reasons_of(watch.follow(with(State::ok), 115 * kSecond)), std::vector{Reason::device_restored});
}

TEST(StateWatch, KeepsALossWhileTheStateIsUnknown) {
  StateWatch watch;
  (void)watch.follow(with(State::lost), 100 * kSecond);
  EXPECT_EQ(reasons_of(watch.follow(with(State::lost), 110 * kSecond)), std::vector{Reason::device_lost});
  HostState unclear = with(State::unknown);
  unclear.containers[0].verdict = "";
  for (std::uint64_t now = 120 * kSecond; now < 200 * kSecond; now += 10 * kSecond) {
    EXPECT_TRUE(watch.follow(unclear, now).empty());
    ASSERT_EQ(watch.lacking().size(), 1U);
    EXPECT_FALSE(watch.lacking()[0].verdict.empty()) << "what was known of it";
  }
  EXPECT_TRUE(watch.follow(with(State::lost), 200 * kSecond).empty());
  EXPECT_EQ(reasons_of(watch.follow(with(State::ok), 210 * kSecond)), std::vector{Reason::device_restored});
}

TEST(StateWatch, KeepsARecordedLossWhileTheStateIsUnknown) {
  StateWatch watch;
  PodEvent lost;
  lost.container = "abc";
  watch.note(lost, 100 * kSecond);
  EXPECT_TRUE(watch.follow(with(State::unknown), 101 * kSecond).empty());
  EXPECT_TRUE(watch.lacking().empty());
  EXPECT_TRUE(watch.follow(with(State::unknown), 111 * kSecond).empty());
  EXPECT_EQ(watch.lacking().size(), 1U);
}

TEST(StateWatch, TakesNoUnknownStateForALoss) {
  StateWatch watch;
  for (std::uint64_t now = 100 * kSecond; now < 200 * kSecond; now += 10 * kSecond) {
    EXPECT_TRUE(watch.follow(with(State::unknown), now).empty());
    EXPECT_TRUE(watch.lacking().empty());
  }
  EXPECT_TRUE(watch.follow(with(State::ok), 200 * kSecond).empty());
  EXPECT_TRUE(watch.follow(with(State::lost), 205 * kSecond).empty()) << "it has just begun";
}

TEST(StateWatch, IsSettledOnceTheFirstLossesCount) {
  StateWatch watch;
  EXPECT_FALSE(watch.is_settled(90 * kSecond));
  (void)watch.follow(with(State::lost), 100 * kSecond);
  EXPECT_FALSE(watch.is_settled(109 * kSecond));
  (void)watch.follow(with(State::lost), 110 * kSecond);
  EXPECT_TRUE(watch.is_settled(110 * kSecond));
  EXPECT_EQ(watch.lacking().size(), 1U);
}

TEST(StateWatch, IsNotSettledWhileAContainerOfTheStartIsNotJudged) {
  StateWatch watch;
  (void)watch.follow(with(State::unknown), 100 * kSecond);
  (void)watch.follow(with(State::unknown), 110 * kSecond);
  EXPECT_FALSE(watch.is_settled(110 * kSecond));
  (void)watch.follow(with(State::unknown), 220 * kSecond);
  EXPECT_TRUE(watch.is_settled(220 * kSecond)) << "it may never be judged";
  StateWatch judged;
  (void)judged.follow(with(State::unknown), 100 * kSecond);
  (void)judged.follow(with(State::ok), 111 * kSecond);
  EXPECT_TRUE(judged.is_settled(111 * kSecond));
  (void)judged.follow(with(State::unknown), 120 * kSecond);
  EXPECT_TRUE(judged.is_settled(120 * kSecond)) << "it was judged once";
}

TEST(StateWatch, CountsALossThatTheFirstProbeFindsFromTheStart) {
  StateWatch watch;
  EXPECT_TRUE(watch.follow(with(State::unknown), 100 * kSecond).empty());
  EXPECT_EQ(reasons_of(watch.follow(with(State::lost), 110 * kSecond)), std::vector{Reason::device_lost});
  EXPECT_EQ(watch.lacking().size(), 1U);
}

TEST(StateWatch, ReportsARiskOnceUntilItIsOver) {
  StateWatch watch;
  EXPECT_EQ(reasons_of(watch.follow(with(State::at_risk), 1 * kSecond)), std::vector{Reason::device_at_risk});
  EXPECT_TRUE(watch.follow(with(State::at_risk), 2 * kSecond).empty());
  EXPECT_TRUE(watch.follow(with(State::ok), 3 * kSecond).empty());
  EXPECT_EQ(reasons_of(watch.follow(with(State::at_risk), 4 * kSecond)), std::vector{Reason::device_at_risk});
}

TEST(StateWatch, ReportsARequestInVainOnce) {
  StateWatch watch;
  EXPECT_TRUE(watch.follow(with(State::not_owed), 100 * kSecond).empty()) << "its allocation may be written yet";
  EXPECT_EQ(reasons_of(watch.follow(with(State::not_owed), 111 * kSecond)),
            std::vector{Reason::device_request_ignored});
  EXPECT_TRUE(watch.follow(with(State::not_owed), 500 * kSecond).empty());
  EXPECT_TRUE(watch.lacking().empty()) << "it lacks nothing that it is owed";
  EXPECT_FALSE(is_warning(Reason::device_request_ignored));
  StateWatch other;
  EXPECT_TRUE(other.follow(with(State::not_owed), 100 * kSecond).empty());
  EXPECT_TRUE(other.follow(with(State::ok), 111 * kSecond).empty());
}

TEST(StateWatch, CountsAContainerOutsidePodsWithoutAnEvent) {
  StateWatch watch;
  HostState host = with(State::lost);
  host.containers[0].pod.reset();
  EXPECT_TRUE(watch.follow(host, 0).empty());
  EXPECT_TRUE(watch.follow(host, 20 * kSecond).empty());
  EXPECT_EQ(watch.lacking().size(), 1U);
}

TEST(StateWatch, ForgetsContainersThatEnded) {
  StateWatch watch;
  (void)watch.follow(with(State::lost), 0);
  (void)watch.follow(with(State::lost), 20 * kSecond);
  EXPECT_TRUE(watch.follow(HostState{}, 30 * kSecond).empty());
  EXPECT_TRUE(watch.lacking().empty());
}

TEST(Condition, IsTrueFalseOrUnknown) {
  const HostState host = with(State::ok);
  EXPECT_EQ(condition_of("", {}).status, Status::yes);
  const Condition lost = condition_of("", host.containers);
  EXPECT_EQ(lost.status, Status::no);
  EXPECT_EQ(lost.reason, "DeviceLost");
  EXPECT_EQ(lost.message, "1 container lacks devices: ml/trainer-0/main: HF-101: it lost the right to open it");
  EXPECT_EQ(condition_of("no capability", host.containers).status, Status::unknown);
  EXPECT_EQ(condition_without_guard("connect: no such file").reason, "GuardAbsent");
}

TEST(Condition, NamesAFewOfMany) {
  const HostState host = with(State::lost);
  const Condition lost = condition_of("", std::vector(1000, host.containers[0]));
  EXPECT_TRUE(lost.message.starts_with("1000 containers lack devices: ml/trainer-0/main: HF-101"));
  EXPECT_TRUE(lost.message.ends_with("; and 995 more"));
  EXPECT_LE(lost.message.size(), 1024U);
}

}  // namespace
}  // namespace hf::notice
