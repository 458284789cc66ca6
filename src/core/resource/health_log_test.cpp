#include "core/resource/health_log.h"

#include <gtest/gtest.h>

namespace hf::resource {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(HealthLog, AUnitRecoversWhenItWasQuiet) {
  HealthLog log;
  log.report("a", "Xid 79", 1 * kSecond);
  log.report("a", "Xid 79", 31 * kSecond);
  EXPECT_EQ(log.problems(80 * kSecond).at("a"), "Xid 79") << "quiet for 49 s";
  EXPECT_EQ(log.next_recovery(80 * kSecond), 91 * kSecond);
  EXPECT_TRUE(log.problems(91 * kSecond).empty());
  EXPECT_EQ(log.next_recovery(91 * kSecond), UINT64_MAX);
}

TEST(HealthLog, ARelapseTakesLonger) {
  HealthLog log;
  log.report("a", "x", 0);
  log.report("a", "x", 70 * kSecond);
  EXPECT_FALSE(log.problems(180 * kSecond).empty());
  EXPECT_TRUE(log.problems(190 * kSecond).empty());
  log.report("a", "x", 190 * kSecond);
  EXPECT_EQ(log.next_recovery(190 * kSecond), (190 + 240) * kSecond);
  for (std::uint64_t i = 0; i < 20; ++i) {
    log.report("a", "x", log.next_recovery(0));
  }
  const std::uint64_t last = log.next_recovery(0);
  log.report("a", "x", last);
  EXPECT_EQ(log.next_recovery(0), last + 3600 * kSecond) << "never for ever";
  log.report("a", "x", last + 3 * 3600 * kSecond);
  EXPECT_EQ(log.next_recovery(0), last + (3 * 3600 + 60) * kSecond) << "long forgotten";
}

}  // namespace
}  // namespace hf::resource
