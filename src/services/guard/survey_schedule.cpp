#include "services/guard/survey_schedule.h"

#include <algorithm>
#include <array>

namespace hf::guard {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMillisecond;

// A new container is surveyed several times: the runtime creates its cgroup, joins it, and only later do its hooks add
// devices.
constexpr std::array<std::uint64_t, 3> kSurveyDelays = {100 * kMillisecond, 700 * kMillisecond, 3 * kSecond};

// Full surveys are taken even where nothing happens. The shares bound the CPU time of surveys in the long run.
constexpr std::uint64_t kLongestSilence = 60 * kSecond;
constexpr std::uint64_t kIdleShare = 1000;
constexpr std::uint64_t kBusyShare = 10;

}  // namespace

// Earlier requests keep their times: a stream of requests must not postpone the survey. Nor may they leave a container
// that appears among them waiting for longer than the second delay: each has one scheduled by then.
void SurveySchedule::request(SurveyScope scope, std::uint64_t now) {
  scope_ = std::max(scope_, scope);
  if (requested_.size() < kSurveyDelays.size()) {
    for (const std::uint64_t delay : kSurveyDelays) {
      requested_.push_back(now + delay);
    }
  } else {
    requested_.back() = std::max(requested_.back(), now + kSurveyDelays.back());
    const auto soonest = std::ranges::lower_bound(requested_, now + kSurveyDelays[0]);
    if (*soonest > now + kSurveyDelays[1]) {
      requested_.insert(soonest, now + kSurveyDelays[1]);
    }
  }
  std::ranges::sort(requested_);
  requested_.erase(std::ranges::unique(requested_).begin(), requested_.end());
}

void SurveySchedule::request_at_once(SurveyScope scope, std::uint64_t now) {
  scope_ = std::max(scope_, scope);
  requested_.insert(requested_.begin(), now);
}

std::uint64_t SurveySchedule::full_survey_at() const {
  return last_full_ + std::max(kLongestSilence, kIdleShare * full_cost_);
}

std::uint64_t SurveySchedule::not_before() const { return last_ == 0 ? 0 : last_ + kBusyShare * cost_; }

std::optional<SurveyScope> SurveySchedule::due(std::uint64_t now) const {
  const bool is_requested = !requested_.empty() && requested_.front() <= now;
  const bool is_full_due = last_full_ == 0 || now > full_survey_at();
  if ((!is_requested && !is_full_due) || now < not_before()) {
    return std::nullopt;
  }
  return is_full_due ? SurveyScope::everything : scope_;
}

void SurveySchedule::has_taken(SurveyScope scope, std::uint64_t now, std::uint64_t cpu_ns) {
  std::erase_if(requested_, [now](std::uint64_t at) { return at <= now; });
  last_ = now;
  cost_ = cpu_ns;
  if (scope == SurveyScope::everything) {
    last_full_ = now;
    full_cost_ = cpu_ns;
    scope_ = SurveyScope::changes;
  }
}

std::uint64_t SurveySchedule::next(std::uint64_t now) const {
  std::uint64_t at = last_full_ == 0 ? now : full_survey_at();
  if (!requested_.empty()) {
    at = std::min(at, requested_.front());
  }
  return std::max(at, not_before());
}

}  // namespace hf::guard
