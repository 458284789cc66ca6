#include "services/guard/inspector.h"

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
constexpr std::uint64_t kLongestWait = 60 * kSecond;
constexpr std::uint64_t kLookShare = 4000;       // of the CPU time of looking at all containers
constexpr std::uint64_t kDiagnosisShare = 2000;  // likewise
constexpr std::uint64_t kDiagnosisPause = 15 * kSecond;

}  // namespace

Inspector::Inspector(const kernel::Host& host, Reports reports)
    : host_(host),
      reports_(std::move(reports)),
      bpf_(kernel::open_kernel_bpf()),
      seats_(kernel::open_kernel_seats(host)),
      upkeep_(host, *bpf_),
      thread_([this] { work(); }) {}

Inspector::~Inspector() {
  mailbox_.post([this] { stops_ = true; });
  thread_.join();
}

bool Inspector::ends_within(std::chrono::milliseconds limit) {
  is_leaving_ = true;
  mailbox_.post([this] { stops_ = true; });
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!has_ended_ && (is_acting_ || std::chrono::steady_clock::now() < end)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return has_ended_;
}

void Inspector::inspect(SurveyPtr survey, Care care) {
  mailbox_.post([this, survey = std::move(survey), care] {
    survey_ = survey;
    is_new_survey_ = true;
    wants_diagnosis_ = true;
    schedule_.follow(survey->wards);
    if (care == Care::changes) {
      return;
    }
    upkeep_.start_over();
    const std::uint64_t now = kernel::monotonic_now();
    if (now - looked_at_all_ > kLookShare * looks_cpu_) {
      looked_at_all_ = now;
      looks_cpu_ = 0;
      schedule_.expect_all();
    }
  });
}

void Inspector::work() {
  ::prctl(PR_SET_NAME, "hf-inspector");
  while (!stops_) {
    look_after_units_and_locks();
    look_inside_one(kernel::monotonic_now());
    diagnose_if_due(kernel::monotonic_now());
    std::array<pollfd, 2> waiting = {{{mailbox_.descriptor(), POLLIN, 0}, {upkeep_.descriptor(), POLLIN, 0}}};
    (void)::poll(waiting.data(), waiting.size(), milliseconds_to_wait(kernel::monotonic_now()));
    for (const Mailbox::Letter& letter : mailbox_.take()) {
      letter();
    }
    if (upkeep_.take_reload()) {
      reports_.reloaded();
    }
  }
  has_ended_ = true;
}

void Inspector::tell(std::vector<Deed> deeds) {
  for (Deed& deed : deeds) {
    schedule_.expect(*deed.ward);
    reports_.deed(std::move(deed));
  }
}

void Inspector::look_after_units_and_locks() {
  if (!std::exchange(is_new_survey_, false)) {
    return;
  }
  is_acting_ = true;
  if (!is_leaving_) {
    tell(upkeep_.look_after(*survey_));
  }
  is_acting_ = false;
}

// One at a time: what comes in between is heard of.
void Inspector::look_inside_one(std::uint64_t now) {
  const WardPtr ward = schedule_.find_due(now);
  if (!ward || is_leaving_) {
    return;
  }
  const std::uint64_t worked = kernel::thread_cpu_now();
  View view = look_inside({host_, *bpf_, *seats_}, ward, survey_->inventory);
  schedule_.has_looked(view, kernel::monotonic_now());
  std::vector<Deed> deeds;
  is_acting_ = true;
  if (!is_leaving_) {
    upkeep_.mend(view, deeds);
  }
  is_acting_ = false;
  reports_.view(std::move(view));
  tell(std::move(deeds));
  looks_cpu_ += kernel::thread_cpu_now() - worked;
}

void Inspector::diagnose_if_due(std::uint64_t now) {
  const bool is_due =
      last_diagnosis_ == 0 || now - last_diagnosis_ > std::max(kDiagnosisPause, kDiagnosisShare * diagnosis_cpu_);
  if (!wants_diagnosis_ || !is_due || !reports_.diagnose || schedule_.next_due() <= now || is_leaving_) {
    return;
  }
  wants_diagnosis_ = false;
  const std::uint64_t worked = kernel::thread_cpu_now();
  Result<std::vector<report::Finding>> findings = reports_.diagnose();
  last_diagnosis_ = kernel::monotonic_now();
  diagnosis_cpu_ = kernel::thread_cpu_now() - worked;
  if (findings) {
    reports_.findings(*std::move(findings));
  }
  ::malloc_trim(0);
}

int Inspector::milliseconds_to_wait(std::uint64_t now) const {
  if (is_new_survey_) {
    return 0;
  }
  std::uint64_t until = std::min(now + kLongestWait, schedule_.next_due());
  if (wants_diagnosis_) {
    until = std::min(until, last_diagnosis_ + std::max(kDiagnosisPause, kDiagnosisShare * diagnosis_cpu_));
  }
  return until <= now ? 0 : int((until - now) / kMillisecond) + 1;
}

}  // namespace hf::guard
