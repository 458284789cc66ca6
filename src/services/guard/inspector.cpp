#include "services/guard/inspector.h"

#include <algorithm>

#include <malloc.h>

#include "kernel/files/clock.h"
#include "kernel/process/thread.h"

namespace hf::guard {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMillisecond;
constexpr std::uint64_t kLongestWait = 60 * kSecond;  // then a lost connection to systemd is opened again
constexpr std::uint64_t kProbeShare = 4000;      // pause after probing all containers, in multiples of its CPU time
constexpr std::uint64_t kDiagnosisShare = 2000;  // the same for diagnoses
constexpr std::uint64_t kDiagnosisPause = 15 * kSecond;

}  // namespace

Inspector::Inspector(const kernel::Host& host, Reports reports)
    : host_(host),
      reports_(std::move(reports)),
      bpf_(kernel::open_kernel_bpf()),
      prober_(kernel::open_node_prober(host)),
      upkeep_(host, *bpf_),
      thread_([this] { work(); }) {}

Inspector::~Inspector() {
  loop_.post([this] { stops_ = true; });
  thread_.join();
}

bool Inspector::ends_within(std::chrono::milliseconds limit) {
  is_leaving_ = true;
  loop_.post([this] { stops_ = true; });
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!has_ended_ && (is_acting_ || std::chrono::steady_clock::now() < end)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return has_ended_;
}

void Inspector::inspect(SurveyPtr survey, SurveyScope scope) {
  loop_.post([this, survey = std::move(survey), scope] {
    survey_ = survey;
    is_new_survey_ = true;
    wants_diagnosis_ = true;
    schedule_.follow(survey->guarded_containers);
    if (scope == SurveyScope::changes) {
      return;
    }
    upkeep_.allow_retries();
    const std::uint64_t now = kernel::monotonic_now();
    if (now - probed_all_at_ > kProbeShare * probes_cpu_) {
      probed_all_at_ = now;
      probes_cpu_ = 0;
      schedule_.make_all_due();
    }
  });
}

void Inspector::work() {
  kernel::name_thread("hf-inspector");
  while (!stops_) {
    maintain_units_and_locks();
    probe_next(kernel::monotonic_now());
    diagnose_if_due(kernel::monotonic_now());
    watch_bus();
    loop_.run_until(std::min(next_due(), kernel::monotonic_now() + kLongestWait));
    if (upkeep_.take_reload()) {
      reports_.reloaded();
    }
  }
  has_ended_ = true;
}

void Inspector::report_results(std::vector<VisitResult> results) {
  for (VisitResult& result : results) {
    schedule_.make_due(*result.guarded);
    reports_.result(std::move(result));
  }
}

void Inspector::maintain_units_and_locks() {
  if (!std::exchange(is_new_survey_, false)) {
    return;
  }
  is_acting_ = true;
  if (!is_leaving_) {
    report_results(upkeep_.maintain(*survey_));
  }
  is_acting_ = false;
}

// Probes one container only, so that new tasks are handled in between.
void Inspector::probe_next(std::uint64_t now) {
  const GuardedContainerPtr guarded = schedule_.find_due(now);
  if (!guarded || is_leaving_) {
    return;
  }
  const std::uint64_t worked = kernel::thread_cpu_now();
  InsideView view = probe_inside({host_, *bpf_, *prober_}, guarded, survey_->inventory);
  schedule_.has_probed(view, kernel::monotonic_now());
  std::vector<VisitResult> results;
  is_acting_ = true;
  if (!is_leaving_) {
    upkeep_.recreate_nodes(view, results);
  }
  is_acting_ = false;
  reports_.view(std::move(view));
  report_results(std::move(results));
  probes_cpu_ += kernel::thread_cpu_now() - worked;
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
    reports_.findings(*std::move(findings), now);
  }
  ::malloc_trim(0);
}

// The connection may have been closed and opened again under the same number.
void Inspector::watch_bus() {
  loop_.unwatch(bus_);
  bus_ = upkeep_.descriptor();
  if (bus_ >= 0) {
    // It only wakes the loop: reloads are taken after every wait.
    (void)loop_.watch(bus_, [] {});
  }
}

std::uint64_t Inspector::next_due() const {
  const std::uint64_t diagnosis = last_diagnosis_ + std::max(kDiagnosisPause, kDiagnosisShare * diagnosis_cpu_);
  return is_new_survey_ ? 0 : std::min(schedule_.next_due(), wants_diagnosis_ ? diagnosis : kernel::EventLoop::kNever);
}

}  // namespace hf::guard
