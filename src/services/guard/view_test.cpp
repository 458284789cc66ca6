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
  EXPECT_EQ(schedule.find_due(0), nullptr);
  schedule.follow({web});
  EXPECT_EQ(schedule.find_due(0), web);
  schedule.has_looked({web, {}, false}, 0);
  schedule.follow({ward("web")});
  EXPECT_EQ(schedule.find_due(1000 * kSecond), nullptr) << "another survey has found the same container";
  EXPECT_EQ(schedule.next_due(), LookSchedule::kNever);
  const WardPtr successor = ward("web", 2);
  schedule.follow({web, successor});
  EXPECT_EQ(schedule.find_due(0), successor) << "another process with its name";
  schedule.has_looked({successor, {}, false}, 0);
  schedule.expect(*web);
  EXPECT_EQ(schedule.find_due(0), web);
  schedule.has_looked({web, {}, false}, 0);
  schedule.expect_all();
  for (int i = 0; i < 2; ++i) {
    const WardPtr due = schedule.find_due(0);
    ASSERT_TRUE(due == web || due == successor);
    schedule.has_looked({due, {}, false}, 0);
  }
  EXPECT_EQ(schedule.find_due(0), nullptr);
}

TEST(LookSchedule, AContainerThatHangsIsSetAsideForLongerEachTime) {
  LookSchedule schedule;
  const WardPtr stuck = ward("stuck");
  const WardPtr other = ward("other");
  std::uint64_t now = 0;
  std::uint64_t last = 0;
  schedule.follow({stuck, other});
  schedule.has_looked({other, {}, false}, now);
  for (int i = 0; i < 10; ++i) {
    schedule.has_looked({stuck, {}, true}, now);
    const std::uint64_t pause = schedule.next_due() - now;
    EXPECT_GE(pause, last);
    EXPECT_LE(pause, 600 * kSecond);
    schedule.expect_all();
    EXPECT_EQ(schedule.find_due(now + pause - 1), other) << "the others do not wait for it";
    schedule.has_looked({other, {}, false}, now);
    EXPECT_EQ(schedule.find_due(now + pause - 1), nullptr);
    EXPECT_EQ(schedule.find_due(now + pause), stuck);
    last = pause;
    now += pause;
  }
  EXPECT_EQ(last, 600 * kSecond);
  schedule.has_looked({stuck, {}, false}, now);
  EXPECT_EQ(schedule.next_due(), LookSchedule::kNever);
  schedule.has_looked({stuck, {}, true}, now);
  EXPECT_EQ(schedule.next_due(), now + 10 * kSecond) << "it has recovered in between";
}

TEST(LookSchedule, ForgetsWhatHasEnded) {
  LookSchedule schedule;
  const WardPtr gone = ward("gone");
  schedule.follow({gone});
  schedule.follow({});
  EXPECT_EQ(schedule.find_due(1000 * kSecond), nullptr);
  schedule.has_looked({gone, {}, true}, 0);
  EXPECT_EQ(schedule.next_due(), LookSchedule::kNever);
}

}  // namespace
}  // namespace hf::guard
