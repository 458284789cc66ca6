#include "services/guard/survey_schedule.h"

#include <algorithm>
#include <array>

namespace hf::guard {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMillisecond;

// A new container takes its time: the runtime creates its cgroup, joins it, and only later its hooks hand out devices.
constexpr std::array<std::uint64_t, 3> kLooks = {100 * kMillisecond, 700 * kMillisecond, 3 * kSecond};

// Where nothing happens at all. The shares bound what surveys cost in the long run.
constexpr std::uint64_t kLongestSilence = 60 * kSecond;
constexpr std::uint64_t kIdleShare = 4000;
constexpr std::uint64_t kBusyShare = 10;

}  // namespace

// What was asked for earlier keeps its time: a stream of questions must not postpone the answer.
void SurveySchedule::ask(Care care, std::uint64_t now) {
  care_ = std::max(care_, care);
  if (asked_.size() < kLooks.size()) {
    for (const std::uint64_t later : kLooks) {
      asked_.push_back(now + later);
    }
    std::ranges::sort(asked_);
    asked_.erase(std::ranges::unique(asked_).begin(), asked_.end());
  } else {
    asked_.back() = std::max(asked_.back(), now + kLooks.back());
  }
}

void SurveySchedule::ask_at_once(Care care, std::uint64_t now) {
  care_ = std::max(care_, care);
  asked_.insert(asked_.begin(), now);
}

std::uint64_t SurveySchedule::full_survey_at() const {
  return last_full_ + std::max(kLongestSilence, kIdleShare * full_cost_);
}

std::uint64_t SurveySchedule::not_before() const { return last_ == 0 ? 0 : last_ + kBusyShare * cost_; }

std::optional<Care> SurveySchedule::due(std::uint64_t now) const {
  const bool is_asked = !asked_.empty() && asked_.front() <= now;
  const bool is_full_due = last_full_ == 0 || now > full_survey_at();
  if ((!is_asked && !is_full_due) || now < not_before()) {
    return std::nullopt;
  }
  return is_full_due ? Care::everything : care_;
}

void SurveySchedule::has_taken(Care care, std::uint64_t now, std::uint64_t cpu_ns) {
  std::erase_if(asked_, [now](std::uint64_t at) { return at <= now; });
  last_ = now;
  cost_ = cpu_ns;
  if (care == Care::everything) {
    last_full_ = now;
    full_cost_ = cpu_ns;
    care_ = Care::changes;
  }
}

std::uint64_t SurveySchedule::next(std::uint64_t now) const {
  std::uint64_t at = last_full_ == 0 ? now : full_survey_at();
  if (!asked_.empty()) {
    at = std::min(at, asked_.front());
  }
  return std::max(at, not_before());
}

}  // namespace hf::guard
