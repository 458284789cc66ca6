#include "services/guard/survey_thread.h"

#include <malloc.h>

#include "kernel/files/clock.h"

namespace hf::guard {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kCostOfFailure = 100 * kMillisecond;  // a survey that fails is tried again, but not at once

}  // namespace

SurveyThread::SurveyThread(const kernel::Host& host, config::Config config, Reports reports)
    : config_(std::move(config)),
      reports_(std::move(reports)),
      surveyor_(host, reports_.census),
      thread_(loop_, "hf-survey", [this] {
        survey_if_due(kernel::monotonic_now());
        loop_.run_until(schedule_.next(kernel::monotonic_now()));
      }) {}

void SurveyThread::request(SurveyScope scope) {
  loop_.post([this, scope] { schedule_.request(scope, kernel::monotonic_now()); });
}

void SurveyThread::set_config(const config::Config& config, std::uint64_t number) {
  loop_.post([this, config, number] {
    config_ = config;
    config_number_ = number;
    schedule_.request_at_once(SurveyScope::everything, kernel::monotonic_now());
  });
}

void SurveyThread::survey_if_due(std::uint64_t now) {
  const std::optional<SurveyScope> scope = schedule_.due(now);
  if (!scope) {
    return;
  }
  Result<Survey> survey = surveyor_.take(config_, *scope);
  if (!survey) {
    schedule_.has_taken(SurveyScope::changes, kernel::monotonic_now(), kCostOfFailure);
    reports_.failed(survey.error().message);
    return;
  }
  survey->config = config_number_;
  schedule_.has_taken(*scope, kernel::monotonic_now(), survey->cpu_ns);
  reports_.survey(std::make_shared<const Survey>(*std::move(survey)), *scope);
  if (*scope == SurveyScope::everything && reports_.refresh) {
    reports_.refresh(config_);
  }
  ::malloc_trim(0);
}

}  // namespace hf::guard
