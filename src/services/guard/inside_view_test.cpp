#include "services/guard/inside_view.h"

#include <gtest/gtest.h>

namespace hf::guard {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

GuardedContainerPtr guarded(const std::string& id, std::int64_t started = 1) {
  auto made = std::make_shared<GuardedContainer>();
  made->container.id.value = id;
  made->container.init = {7};
  made->container.started_ticks = started;
  return made;
}

TEST(ProbeSchedule, EveryNewContainerIsDueOnce) {
  ProbeSchedule schedule;
  const GuardedContainerPtr web = guarded("web");
  EXPECT_EQ(schedule.find_due(0), nullptr);
  schedule.follow({web});
  EXPECT_EQ(schedule.find_due(0), web);
  schedule.has_probed({web, {}, false}, 0, 0);
  schedule.follow({guarded("web")});
  EXPECT_EQ(schedule.find_due(1000 * kSecond), nullptr) << "another survey has found the same container";
  EXPECT_EQ(schedule.next_due(), ProbeSchedule::kNever);
  const GuardedContainerPtr successor = guarded("web", 2);
  schedule.follow({web, successor});
  EXPECT_EQ(schedule.find_due(0), successor) << "another first process with the same id";
  schedule.has_probed({successor, {}, false}, 0, 0);
  schedule.make_due(*web);
  EXPECT_EQ(schedule.find_due(0), web);
  schedule.has_probed({web, {}, false}, 0, 0);
  schedule.make_all_due(1);
  for (int i = 0; i < 2; ++i) {
    const GuardedContainerPtr due = schedule.find_due(1);
    ASSERT_TRUE(due == web || due == successor);
    schedule.has_probed({due, {}, false}, 0, 0);
  }
  EXPECT_EQ(schedule.find_due(0), nullptr);
}

TEST(ProbeSchedule, AContainerThatHangsIsProbedLessAndLessOften) {
  ProbeSchedule schedule;
  const GuardedContainerPtr stuck = guarded("stuck");
  const GuardedContainerPtr other = guarded("other", 2);
  std::uint64_t now = 0;
  std::uint64_t last = 0;
  schedule.follow({stuck, other});
  schedule.has_probed({other, {}, false}, now, 0);
  for (int i = 0; i < 10; ++i) {
    schedule.has_probed({stuck, {}, true}, now, 0);
    const std::uint64_t pause = schedule.next_due() - now;
    EXPECT_GE(pause, last);
    EXPECT_LE(pause, 600 * kSecond);
    schedule.make_all_due(now + 1);
    EXPECT_EQ(schedule.find_due(now + 1), other) << "the others do not wait for it";
    schedule.has_probed({other, {}, false}, now, 0);
    EXPECT_EQ(schedule.find_due(now + pause - 1), nullptr);
    EXPECT_EQ(schedule.find_due(now + pause), stuck);
    last = pause;
    now += pause;
  }
  EXPECT_EQ(last, 600 * kSecond);
  schedule.has_probed({stuck, {}, false}, now, 0);
  EXPECT_EQ(schedule.next_due(), ProbeSchedule::kNever);
  schedule.has_probed({stuck, {}, true}, now, 0);
  EXPECT_EQ(schedule.next_due(), now + 10 * kSecond) << "it has recovered in between";
}

InsideView view_of(const GuardedContainerPtr& guarded, container::AccessFailure failure) {
  container::NodeState state;
  state.diagnosis.failure = failure;
  return {guarded, {state}, false};
}

TEST(ProbeSchedule, SaysWhenAContainerHasOtherAccessFailuresThanBefore) {
  using container::AccessFailure;
  ProbeSchedule schedule;
  const GuardedContainerPtr web = guarded("web");
  schedule.follow({web});
  EXPECT_FALSE(schedule.has_probed(view_of(web, AccessFailure::none), 0, 0));
  EXPECT_TRUE(schedule.has_probed(view_of(web, AccessFailure::missing), 0, 0));
  schedule.follow({web});
  EXPECT_FALSE(schedule.has_probed(view_of(web, AccessFailure::missing), 0, 0));
  EXPECT_TRUE(schedule.has_probed(view_of(web, AccessFailure::cgroup_denies), 0, 0));
  EXPECT_TRUE(schedule.has_probed(view_of(web, AccessFailure::none), 0, 0));
}

TEST(ProbeSchedule, ProbesEveryContainerNowAndThen) {
  ProbeSchedule schedule;
  EXPECT_EQ(schedule.next_round(), ProbeSchedule::kNever);
  const GuardedContainerPtr web = guarded("web");
  schedule.follow({web});
  schedule.start_round_if_due(20 * kSecond);
  EXPECT_EQ(schedule.find_due(20 * kSecond), web);
  EXPECT_FALSE(schedule.has_probed({web, {}, false}, 20 * kSecond, 0));
  const std::uint64_t next = schedule.next_round();
  EXPECT_LE(next, 40 * kSecond);
  schedule.start_round_if_due(next - 1);
  EXPECT_EQ(schedule.find_due(next), nullptr);
  schedule.start_round_if_due(next);
  EXPECT_EQ(schedule.find_due(next), web);
}

TEST(ProbeSchedule, RoundsTakeALimitedShareOfACore) {
  constexpr std::uint64_t kCost = kSecond / 10;
  ProbeSchedule schedule;
  const GuardedContainerPtr web = guarded("web");
  schedule.follow({web});
  schedule.has_probed({web, {}, false}, 0, kCost);
  EXPECT_GE(schedule.next_round(), 500 * kCost);
  schedule.make_all_due(kSecond);
  EXPECT_EQ(schedule.find_due(kSecond), nullptr) << "however often something changes";
  schedule.make_all_due(100 * kSecond);
  EXPECT_EQ(schedule.find_due(100 * kSecond), web);
}

TEST(ProbeSchedule, ForgetsContainersThatHaveEnded) {
  ProbeSchedule schedule;
  const GuardedContainerPtr gone = guarded("gone");
  schedule.follow({gone});
  schedule.follow({});
  EXPECT_EQ(schedule.find_due(1000 * kSecond), nullptr);
  schedule.has_probed({gone, {}, true}, 0, 0);
  EXPECT_EQ(schedule.next_due(), ProbeSchedule::kNever);
}

}  // namespace
}  // namespace hf::guard
