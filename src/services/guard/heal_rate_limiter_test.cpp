#include "services/guard/heal_rate_limiter.h"

#include <gtest/gtest.h>

namespace hf::guard {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(HealRateLimiter, HealsABurstAtOnceAndThenSlowsDown) {
  container::Limits limits;
  limits.burst = 10;
  limits.per_second = 1;
  HealRateLimiter limiter;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(limiter.take(limits, kSecond)) << i;
  }
  EXPECT_FALSE(limiter.take(limits, kSecond));
  EXPECT_GT(limiter.ready_at(), kSecond);
}

// With the default limits: tokens of a pause must not end the fight too early.
TEST(HealRateLimiter, PausesGrowUpToTheLongest) {
  const container::Limits limits;
  HealRateLimiter limiter;
  std::uint64_t now = kSecond;
  while (limiter.take(limits, now)) {
  }
  std::uint64_t longest = 0;
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t pause = limiter.ready_at() - now;
    EXPECT_GE(pause, longest) << i;
    longest = pause;
    now = limiter.ready_at();
    EXPECT_FALSE(limiter.take(limits, now));
  }
  EXPECT_EQ(longest, 10 * kSecond);
}

TEST(HealRateLimiter, RefillsAtTheLimitsRateBetweenBursts) {
  container::Limits limits;
  limits.burst = 10;
  limits.per_second = 5;
  HealRateLimiter limiter;
  std::uint64_t now = kSecond;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(limiter.take(limits, now)) << i;
    now += kSecond / 5;
  }
}

TEST(HealRateLimiter, StartsAgainWhenTheWriterHasStopped) {
  container::Limits limits;
  limits.burst = 10;
  limits.per_second = 10;
  HealRateLimiter limiter;
  for (int i = 0; i < 11; ++i) {
    (void)limiter.take(limits, kSecond);
  }
  ASSERT_GT(limiter.ready_at(), kSecond);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(limiter.take(limits, 100 * kSecond)) << i;  // a whole burst again
  }
}

}  // namespace
}  // namespace hf::guard
