#include "services/guard/scout.h"

#include <algorithm>
#include <array>

#include <malloc.h>
#include <poll.h>
#include <sys/prctl.h>

#include "kernel/clock.h"

namespace hf::guard {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMillisecond;

// A new container takes its time: the runtime makes its cgroup, joins it, and only later its hooks hand out devices.
constexpr std::array<std::uint64_t, 3> kLooks = {100 * kMillisecond, 700 * kMillisecond, 3 * kSecond};

// Where nothing happens at all. A survey costs time; this bounds what it costs in the long run.
constexpr std::uint64_t kLongestSilence = 60 * kSecond;
constexpr std::uint64_t kIdleShare = 4000;  // of the time of a survey
constexpr std::uint64_t kBusyShare = 10;    // when containers come and go all the time

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
  mailbox_.post([this, care] {
    const std::uint64_t now = kernel::monotonic_now();
    care_ = std::max(care_, care);
    if (surveys_due_.size() < kLooks.size()) {
      surveys_due_.clear();
      for (const std::uint64_t later : kLooks) {
        surveys_due_.push_back(now + later);
      }
    } else {
      surveys_due_.back() = now + kLooks.back();
    }
  });
}

void Scout::set_config(const config::Config& config) {
  mailbox_.post([this, config] {
    config_ = config;
    care_ = Care::everything;
    surveys_due_.assign(1, kernel::monotonic_now());
  });
}

void Scout::work() {
  ::prctl(PR_SET_NAME, "hf-scout");
  while (!stops_) {
    const std::uint64_t now = kernel::monotonic_now();
    survey_if_due(now);
    wait(milliseconds_to_wait(kernel::monotonic_now()));
    for (const Mailbox::Letter& letter : mailbox_.take()) {
      letter();
    }
  }
  has_ended_ = true;
}

// A survey of everything comes when it is due, however many partial ones there were; each is paid for by what it cost
// in CPU time.
void Scout::survey_if_due(std::uint64_t now) {
  const bool is_asked = std::ranges::any_of(surveys_due_, [now](std::uint64_t due) { return due <= now; });
  const bool is_first = last_survey_ == 0;
  const bool is_old = now - last_full_survey_ > std::max(kLongestSilence, kIdleShare * full_survey_cost_);
  const bool is_too_soon = !is_first && now - last_survey_ < kBusyShare * survey_cost_;
  if ((!is_asked && !is_first && !is_old) || is_too_soon) {
    return;
  }
  std::erase_if(surveys_due_, [now](std::uint64_t due) { return due <= now; });
  const Care asked = std::exchange(care_, Care::changes);
  const Care care = is_old ? Care::everything : asked;
  Result<Survey> survey = surveyor_.take(config_, care);
  last_survey_ = kernel::monotonic_now();
  last_full_survey_ = care == Care::everything ? last_survey_ : last_full_survey_;
  if (!survey) {
    reports_.failed(survey.error().message);
    return;
  }
  survey_cost_ = survey->cpu_ns;
  full_survey_cost_ = care == Care::everything ? survey->cpu_ns : full_survey_cost_;
  reports_.survey(std::make_shared<const Survey>(*std::move(survey)), care);
  if (care == Care::everything && reports_.refresh) {
    reports_.refresh(config_);
  }
  ::malloc_trim(0);
}

int Scout::milliseconds_to_wait(std::uint64_t now) const {
  std::uint64_t until = now + kLongestSilence;
  if (!surveys_due_.empty()) {
    until = std::min(until, std::max(std::ranges::min(surveys_due_), last_survey_ + kBusyShare * survey_cost_));
  }
  return until <= now ? 0 : int((until - now) / kMillisecond) + 1;
}

void Scout::wait(int milliseconds) {
  pollfd waiting{mailbox_.descriptor(), POLLIN, 0};
  (void)::poll(&waiting, 1, milliseconds);
}

}  // namespace hf::guard
