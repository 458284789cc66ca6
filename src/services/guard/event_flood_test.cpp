#include "services/guard/event_flood.h"

#include <gtest/gtest.h>

namespace hf::guard {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;

TEST(EventFlood, BeginsAndEndsWithTheNumberOfEventsInATenthOfASecond) {
  EventFlood flood;
  std::uint64_t now = 1'000 * kMillisecond;
  flood.count(0, now);
  const auto count_in_next_tenth = [&](std::size_t events) {
    flood.count(events, now);
    now += 101 * kMillisecond;
    flood.count(0, now);
    return flood.is_flooded();
  };
  EXPECT_FALSE(count_in_next_tenth(500));
  EXPECT_TRUE(count_in_next_tenth(501));
  EXPECT_FALSE(count_in_next_tenth(0));
}

}  // namespace
}  // namespace hf::guard
