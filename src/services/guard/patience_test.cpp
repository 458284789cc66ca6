#include "services/guard/patience.h"

#include <gtest/gtest.h>

namespace hf::guard {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(Patience, HealsABurstAtOnceAndThenSlowsDown) {
  container::Limits limits;
  limits.burst = 10;
  limits.per_second = 1;
  Patience patience;
  std::uint64_t now = kSecond;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(patience.take(limits, now)) << i;
  }
  EXPECT_FALSE(patience.take(limits, now));
  EXPECT_TRUE(patience.is_fighting());
  EXPECT_GT(patience.ready_at(), now);
}

TEST(Patience, PausesGrowUpToTheLongest) {
  container::Limits limits;
  limits.burst = 10;
  limits.per_second = 1;
  limits.longest_wait = std::chrono::milliseconds(100);
  Patience patience;
  std::uint64_t now = kSecond;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(patience.take(limits, now));
  }
  std::uint64_t longest = 0;
  for (int i = 0; i < 8; ++i) {
    ASSERT_FALSE(patience.take(limits, now));
    EXPECT_GE(patience.ready_at() - now, longest);
    longest = patience.ready_at() - now;
    now = patience.ready_at();
  }
  EXPECT_EQ(longest, 100'000'000U);
}

TEST(Patience, ForgivesWhenItIsCalm) {
  container::Limits limits;
  limits.burst = 10;
  limits.per_second = 10;
  Patience patience;
  for (int i = 0; i < 11; ++i) {
    (void)patience.take(limits, kSecond);
  }
  EXPECT_TRUE(patience.is_fighting());
  EXPECT_TRUE(patience.take(limits, 100 * kSecond));
  EXPECT_FALSE(patience.is_fighting());
}

}  // namespace
}  // namespace hf::guard
