#include "services/guard/scout.h"

#include <algorithm>

#include <malloc.h>
#include <poll.h>
#include <sys/prctl.h>

#include "kernel/clock.h"

namespace hf::guard {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kLongestWait = 60'000 * kMillisecond;
constexpr std::uint64_t kCostOfFailure = 100 * kMillisecond;  // a survey that fails is tried again, but not at once

}  // namespace

Scout::Scout(const kernel::Host& host, config::Config config, Reports reports)
    : config_(std::move(config)), reports_(std::move(reports)), surveyor_(host), thread_([this] { work(); }) {}

Scout::~Scout() {
  mailbox_.post([this] { stops_ = true; });
  thread_.join();
}

bool Scout::ends_within(std::chrono::milliseconds limit) {
  mailbox_.post([this] { stops_ = true; });
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!has_ended_ && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return has_ended_;
}

void Scout::ask(Care care) {
  mailbox_.post([this, care] { schedule_.ask(care, kernel::monotonic_now()); });
}

void Scout::set_config(const config::Config& config) {
  mailbox_.post([this, config] {
    config_ = config;
    schedule_.ask_at_once(Care::everything, kernel::monotonic_now());
  });
}

void Scout::work() {
  ::prctl(PR_SET_NAME, "hf-scout");
  while (!stops_) {
    survey_if_due(kernel::monotonic_now());
    wait(kernel::monotonic_now());
    for (const Mailbox::Letter& letter : mailbox_.take()) {
      letter();
    }
  }
  has_ended_ = true;
}

void Scout::survey_if_due(std::uint64_t now) {
  const std::optional<Care> care = schedule_.due(now);
  if (!care) {
    return;
  }
  Result<Survey> survey = surveyor_.take(config_, *care);
  if (!survey) {
    schedule_.has_taken(Care::changes, kernel::monotonic_now(), kCostOfFailure);
    reports_.failed(survey.error().message);
    return;
  }
  schedule_.has_taken(*care, kernel::monotonic_now(), survey->cpu_ns);
  reports_.survey(std::make_shared<const Survey>(*std::move(survey)), *care);
  if (*care == Care::everything && reports_.refresh) {
    reports_.refresh(config_);
  }
  ::malloc_trim(0);
}

void Scout::wait(std::uint64_t now) {
  const std::uint64_t until = std::min(schedule_.next(now), now + kLongestWait);
  pollfd waiting{mailbox_.descriptor(), POLLIN, 0};
  (void)::poll(&waiting, 1, until <= now ? 0 : int((until - now) / kMillisecond) + 1);
}

}  // namespace hf::guard
