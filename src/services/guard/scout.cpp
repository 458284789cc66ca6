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
constexpr std::uint64_t kDiagnosisShare = 2000;
constexpr std::uint64_t kDiagnosisPause = 15 * kSecond;

}  // namespace

Scout::Scout(const kernel::Host& host, config::Config config, Reports reports)
    : config_(std::move(config)),
      reports_(std::move(reports)),
      bpf_(kernel::open_kernel_bpf()),
      seats_(kernel::open_kernel_seats(host)),
      surveyor_(host, *bpf_, *seats_),
      upkeep_(host, *bpf_),
      thread_([this] { work(); }) {}

Scout::~Scout() {
  mailbox_.post([this] { stops_ = true; });
  thread_.join();
}

bool Scout::ends_within(std::chrono::milliseconds limit) {
  is_leaving_ = true;
  mailbox_.post([this] { stops_ = true; });
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!has_ended_ && (is_acting_ || std::chrono::steady_clock::now() < end)) {
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
    diagnose_if_due(now);
    wait(milliseconds_to_wait(kernel::monotonic_now()));
    for (const Mailbox::Letter& letter : mailbox_.take()) {
      letter();
    }
    if (upkeep_.take_reload()) {
      reports_.reloaded();
      care_ = Care::everything;
      surveys_due_.assign(1, kernel::monotonic_now() + kLooks.front());
    }
  }
  has_ended_ = true;
}

void Scout::survey_if_due(std::uint64_t now) {
  const bool is_asked = !surveys_due_.empty() && surveys_due_.front() <= now;
  const bool is_first = last_survey_ == 0;
  const bool is_old = now - last_survey_ > std::max(kLongestSilence, kIdleShare * survey_took_);
  const bool is_too_soon = !is_first && now - last_survey_ < kBusyShare * survey_took_;
  if ((!is_asked && !is_first && !is_old) || is_too_soon) {
    return;
  }
  std::erase_if(surveys_due_, [now](std::uint64_t due) { return due <= now; });
  const Care care = is_old ? Care::everything : std::exchange(care_, Care::changes);
  Result<Survey> survey = surveyor_.take(config_, care);
  last_survey_ = kernel::monotonic_now();
  if (!survey) {
    reports_.failed(survey.error().message);
    return;
  }
  survey_took_ = survey->took_ns;
  const auto shared = std::make_shared<const Survey>(*std::move(survey));
  reports_.survey(shared);
  is_acting_ = true;
  if (!is_leaving_) {
    look_after(*shared, care);
  }
  is_acting_ = false;
  if (care == Care::everything && reports_.refresh) {
    reports_.refresh(config_);
  }
  wants_diagnosis_ = true;
  ::malloc_trim(0);
}

void Scout::look_after(const Survey& survey, Care care) {
  for (Deed& deed : upkeep_.look_after(survey, care)) {
    surveyor_.look_again(deed.ward->container.id);
    surveys_due_.push_back(kernel::monotonic_now() + kLooks.front());
    reports_.deed(std::move(deed));
  }
}

void Scout::diagnose_if_due(std::uint64_t now) {
  const bool is_due =
      last_diagnosis_ == 0 || now - last_diagnosis_ > std::max(kDiagnosisPause, kDiagnosisShare * diagnosis_took_);
  if (!wants_diagnosis_ || !is_due || !reports_.diagnose) {
    return;
  }
  wants_diagnosis_ = false;
  Result<std::vector<report::Finding>> findings = reports_.diagnose();
  last_diagnosis_ = kernel::monotonic_now();
  diagnosis_took_ = last_diagnosis_ - now;
  if (findings) {
    reports_.findings(*std::move(findings));
  }
  ::malloc_trim(0);
}

int Scout::milliseconds_to_wait(std::uint64_t now) const {
  std::uint64_t until = now + kLongestSilence;
  if (!surveys_due_.empty()) {
    until = std::min(until, std::max(surveys_due_.front(), last_survey_ + kBusyShare * survey_took_));
  }
  if (wants_diagnosis_) {
    until = std::min(until, last_diagnosis_ + std::max(kDiagnosisPause, kDiagnosisShare * diagnosis_took_));
  }
  return until <= now ? 0 : int((until - now) / kMillisecond) + 1;
}

void Scout::wait(int milliseconds) {
  std::array<pollfd, 2> waiting = {{{mailbox_.descriptor(), POLLIN, 0}, {upkeep_.descriptor(), POLLIN, 0}}};
  (void)::poll(waiting.data(), waiting.size(), milliseconds);
}

}  // namespace hf::guard
