#include "services/guard/view.h"

#include <gtest/gtest.h>

namespace hf::guard {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

WardPtr ward(const std::string& id, std::int64_t started = 1) {
  auto made = std::make_shared<Ward>();
  made->container.id.value = id;
  made->container.init = {7};
  made->container.started_ticks = started;
  return made;
}

TEST(LookSchedule, EveryNewContainerIsDueOnce) {
  LookSchedule schedule;
  const WardPtr web = ward("web");
  EXPECT_TRUE(schedule.is_due(*web, 0));
  schedule.has_looked({web, {}, false}, 0);
  EXPECT_FALSE(schedule.is_due(*web, 1000 * kSecond));
  EXPECT_TRUE(schedule.is_due(*ward("web", 2), 0)) << "another process with its name";
  schedule.expect_all();
  EXPECT_TRUE(schedule.is_due(*web, 0));
}

TEST(LookSchedule, AContainerThatHangsIsSetAsideForLongerEachTime) {
  LookSchedule schedule;
  const WardPtr stuck = ward("stuck");
  std::uint64_t now = 0;
  std::uint64_t last = 0;
  for (int i = 0; i < 10; ++i) {
    schedule.has_looked({stuck, {}, true}, now);
    const std::uint64_t pause = schedule.next_retry() - now;
    EXPECT_GE(pause, last);
    EXPECT_LE(pause, 600 * kSecond);
    EXPECT_FALSE(schedule.is_due(*stuck, now + pause - 1));
    EXPECT_TRUE(schedule.is_due(*stuck, now + pause));
    EXPECT_TRUE(schedule.is_due(*ward("other"), now)) << "the others do not wait for it";
    last = pause;
    now += pause;
  }
  EXPECT_EQ(last, 600 * kSecond);
  schedule.has_looked({stuck, {}, false}, now);
  EXPECT_EQ(schedule.next_retry(), 0U);
  schedule.has_looked({stuck, {}, true}, now);
  EXPECT_EQ(schedule.next_retry(), now + 10 * kSecond) << "it has recovered in between";
}

TEST(LookSchedule, TwoContainersMayHaveOneId) {
  LookSchedule schedule;
  const WardPtr first = ward("web", 1);
  const WardPtr second = ward("web", 2);
  schedule.has_looked({first, {}, false}, 0);
  schedule.has_looked({second, {}, false}, 0);
  EXPECT_FALSE(schedule.is_due(*first, 0) || schedule.is_due(*second, 0));
}

TEST(LookSchedule, ForgetsWhatHasEnded) {
  LookSchedule schedule;
  schedule.has_looked({ward("gone"), {}, true}, 0);
  schedule.forget_all_but({ward("here")});
  EXPECT_EQ(schedule.next_retry(), 0U);
}

}  // namespace
}  // namespace hf::guard
