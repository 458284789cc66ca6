#include "services/guard/survey_schedule.h"

#include <gtest/gtest.h>

namespace hf::guard {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMillisecond;

TEST(SurveySchedule, StartsWithASurveyOfEverything) {
  const SurveySchedule schedule;
  EXPECT_EQ(schedule.due(kSecond), SurveyScope::everything);
}

TEST(SurveySchedule, SurveysThreeTimesAfterARequest) {
  SurveySchedule schedule;
  schedule.has_taken(SurveyScope::everything, kSecond, kMillisecond);
  schedule.request(SurveyScope::changes, 2 * kSecond);
  std::vector<std::uint64_t> taken;
  for (std::uint64_t now = 2 * kSecond; now < 7 * kSecond; now += 10 * kMillisecond) {
    if (schedule.due(now)) {
      taken.push_back((now - 2 * kSecond) / kMillisecond);
      schedule.has_taken(*schedule.due(now), now, kMillisecond);
    }
  }
  EXPECT_EQ(taken, (std::vector<std::uint64_t>{100, 700, 3000}));
}

TEST(SurveySchedule, AStreamOfRequestsDoesNotPostponeTheSurvey) {
  SurveySchedule schedule;
  schedule.has_taken(SurveyScope::everything, kSecond, kMillisecond);
  std::uint64_t first = 0;
  for (std::uint64_t now = 2 * kSecond; first == 0 && now < 10 * kSecond; now += kMillisecond) {
    schedule.request(SurveyScope::changes, now);
    first = schedule.due(now) ? now : 0;
  }
  EXPECT_EQ(first, 2 * kSecond + 100 * kMillisecond);
}

// A container without a name of an engine's is found by a survey alone, and gets its CPUs then: within its first
// second.
TEST(SurveySchedule, SurveysWithinASecondOfEachRequestHoweverManyThereWere) {
  for (std::uint64_t second = 2'000; second < 6'000; second += 70) {
    for (std::uint64_t third = second; third < 6'000; third += 130) {
      SurveySchedule schedule;
      schedule.has_taken(SurveyScope::everything, kSecond, kMillisecond);
      std::uint64_t unseen = 0;  // the time of the latest request that no survey has followed yet by 100 ms
      for (std::uint64_t now = 2'000; now < 8'000; now += 10) {
        if (now == 2'000 || now == second || now == third) {
          schedule.request(SurveyScope::changes, now * kMillisecond);
          unseen = unseen == 0 ? now : unseen;
        }
        if (schedule.due(now * kMillisecond)) {
          schedule.has_taken(SurveyScope::changes, now * kMillisecond, kMillisecond);
          unseen = now >= third + 100 || now < second ? 0 : unseen;
        }
        ASSERT_TRUE(unseen == 0 || now < third || now <= third + 700) << second << " " << third << " " << now;
      }
    }
  }
}

TEST(SurveySchedule, AStreamOfRequestsCausesFewSurveys) {
  SurveySchedule schedule;
  schedule.has_taken(SurveyScope::everything, kSecond, 0);
  int surveys = 0;
  for (std::uint64_t now = kSecond; now < 21 * kSecond; now += kMillisecond) {
    schedule.request(SurveyScope::changes, now);
    if (const std::optional<SurveyScope> scope = schedule.due(now)) {
      schedule.has_taken(*scope, now, 0);
      ++surveys;
    }
  }
  EXPECT_LT(surveys, 4 * 20);
}

TEST(SurveySchedule, PartialSurveysDoNotPostponeTheFullOne) {
  SurveySchedule schedule;
  schedule.has_taken(SurveyScope::everything, kSecond, kMillisecond);
  std::uint64_t full = 0;
  for (std::uint64_t now = kSecond; full == 0 && now < 200 * kSecond; now += 50 * kMillisecond) {
    schedule.request(SurveyScope::changes, now);
    if (const std::optional<SurveyScope> scope = schedule.due(now)) {
      full = *scope == SurveyScope::everything ? now : 0;
      schedule.has_taken(*scope, now, kMillisecond);
    }
  }
  EXPECT_GT(full, 60 * kSecond);
  EXPECT_LT(full, 62 * kSecond);
}

TEST(SurveySchedule, ThePauseAfterASurveyDependsOnItsCpuTime) {
  SurveySchedule schedule;
  schedule.has_taken(SurveyScope::everything, kSecond, 100 * kMillisecond);
  schedule.request(SurveyScope::changes, kSecond);
  EXPECT_EQ(schedule.due(kSecond + 999 * kMillisecond), std::nullopt);
  EXPECT_EQ(schedule.due(2 * kSecond), SurveyScope::changes);
  EXPECT_EQ(schedule.next(kSecond), 2 * kSecond);
}

TEST(SurveySchedule, FullSurveysOfALargeHostTakeALimitedShareOfACore) {
  SurveySchedule schedule;
  schedule.has_taken(SurveyScope::everything, kSecond, 100 * kMillisecond);
  EXPECT_EQ(schedule.next(kSecond), 101 * kSecond);
  schedule.has_taken(SurveyScope::everything, kSecond, 10 * kMillisecond);
  EXPECT_EQ(schedule.next(kSecond), 61 * kSecond) << "and of a small one come every minute";
}

TEST(SurveySchedule, ARequestMadeBeforeTheEndOfASurveyIsFulfilledByIt) {
  SurveySchedule schedule;
  schedule.has_taken(SurveyScope::everything, kSecond, 0);
  schedule.request_at_once(SurveyScope::everything, 2 * kSecond);
  EXPECT_EQ(schedule.due(2 * kSecond), SurveyScope::everything);
  schedule.has_taken(SurveyScope::everything, 3 * kSecond, 0);
  EXPECT_EQ(schedule.due(3 * kSecond), std::nullopt);
}

}  // namespace
}  // namespace hf::guard
