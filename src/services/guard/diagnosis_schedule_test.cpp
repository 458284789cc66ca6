#include "services/guard/diagnosis_schedule.h"

#include <gtest/gtest.h>

namespace hf::guard {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMillisecond;
constexpr std::uint64_t kCostOfAThousand = 200 * kMillisecond;  // containers

TEST(DiagnosisSchedule, WaitsForTheFirstSurvey) {
  DiagnosisSchedule schedule;
  schedule.request(kSecond);
  EXPECT_EQ(schedule.next(), DiagnosisSchedule::kNever);
  schedule.note_survey();
  EXPECT_EQ(schedule.next(), 0U);
}

TEST(DiagnosisSchedule, ComesEveryMinuteOrSoonerThoughNothingHappens) {
  DiagnosisSchedule schedule;
  schedule.note_survey();
  schedule.has_taken(0, kSecond, kMillisecond);
  EXPECT_EQ(schedule.next(), 16 * kSecond);
  schedule.has_taken(0, kSecond, 40 * kMillisecond);
  EXPECT_EQ(schedule.next(), 41 * kSecond);
  schedule.note_survey();
  EXPECT_EQ(schedule.next(), 16 * kSecond);
  schedule.has_taken(16 * kSecond, 16 * kSecond, kCostOfAThousand);
  EXPECT_EQ(schedule.next(), 76 * kSecond);
}

TEST(DiagnosisSchedule, ComesSoonAfterALoss) {
  DiagnosisSchedule schedule;
  schedule.note_survey();
  schedule.has_taken(0, 0, kMillisecond);
  schedule.request(5 * kSecond);
  schedule.request(9 * kSecond);
  EXPECT_EQ(schedule.next(), 6 * kSecond) << "a stream of losses does not postpone it";
  schedule.has_taken(6 * kSecond, 6 * kSecond, kMillisecond);
  EXPECT_EQ(schedule.next(), 21 * kSecond);
  schedule.request(6 * kSecond);
  EXPECT_EQ(schedule.next(), 8 * kSecond) << "and does not take all of a core";
}

TEST(DiagnosisSchedule, TakesALimitedShareOfACore) {
  DiagnosisSchedule schedule;
  schedule.note_survey();
  schedule.has_taken(0, 0, kCostOfAThousand);
  schedule.note_survey();
  EXPECT_EQ(schedule.next(), 60 * kSecond);
  schedule.request(0);
  EXPECT_EQ(schedule.next(), 10 * kSecond);
}

TEST(DiagnosisSchedule, ALossDuringADiagnosisNeedsAnother) {
  DiagnosisSchedule schedule;
  schedule.note_survey();
  schedule.has_taken(0, 0, 0);
  schedule.request(10 * kSecond + kMillisecond);
  schedule.has_taken(10 * kSecond, 11 * kSecond, 0);
  EXPECT_EQ(schedule.next(), 13 * kSecond);
}

}  // namespace
}  // namespace hf::guard
