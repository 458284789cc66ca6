#include "services/guard/inspector.h"

#include <algorithm>

#include <malloc.h>
#include <sys/resource.h>

#include "kernel/files/clock.h"

namespace hf::guard {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMillisecond;
constexpr std::uint64_t kLongestWait = 60 * kSecond;  // then a lost connection to systemd is opened again

// Of this thread and of the children that it waited for: the doctor asks kubelet for its version. Those of other
// threads count as well, which makes diagnoses a little rarer.
std::uint64_t cpu_with_children() {
  rusage children{};
  (void)::getrusage(RUSAGE_CHILDREN, &children);
  const auto nanoseconds = [](const timeval& time) {
    return std::uint64_t(time.tv_sec) * kSecond + std::uint64_t(time.tv_usec) * 1000;
  };
  return kernel::thread_cpu_now() + nanoseconds(children.ru_utime) + nanoseconds(children.ru_stime);
}

}  // namespace

Inspector::Inspector(const kernel::Host& host, Reports reports)
    : host_(host),
      reports_(std::move(reports)),
      bpf_(kernel::open_kernel_bpf()),
      prober_(kernel::open_node_prober(host)),
      upkeep_(host, *bpf_),
      thread_(loop_, "hf-inspector", [this] { step(); }) {}

void Inspector::request_end() {
  is_leaving_ = true;
  thread_.request_end();
}

bool Inspector::has_ended_by(std::chrono::steady_clock::time_point deadline) {
  if (thread_.has_ended_by(deadline)) {
    return true;
  }
  is_acting_.wait(true);
  return thread_.has_ended_by(deadline);
}

void Inspector::inspect(SurveyPtr survey, SurveyScope scope) {
  loop_.post([this, survey = std::move(survey), scope] {
    survey_ = survey;
    is_new_survey_ = true;
    diagnoses_.note_survey();
    schedule_.follow(survey->guarded_containers);
    if (scope == SurveyScope::changes) {
      return;
    }
    upkeep_.allow_retries();
    schedule_.make_all_due(kernel::monotonic_now());
  });
}

void Inspector::request_diagnosis() {
  if (!is_requested_.exchange(true)) {  // thousands of visits may be made in a second
    loop_.post([this] { diagnoses_.request(kernel::monotonic_now()); });
  }
}

void Inspector::step() {
  maintain_units_and_locks();
  probe_next(kernel::monotonic_now());
  diagnose_if_due(kernel::monotonic_now());
  watch_bus();
  loop_.run_until(std::min(next_due(), kernel::monotonic_now() + kLongestWait));
  if (upkeep_.take_reload()) {
    reports_.reloaded();
  }
}

void Inspector::act(const std::function<void()>& change) {
  is_acting_ = true;
  if (!is_leaving_) {
    change();
  }
  is_acting_ = false;
  is_acting_.notify_all();
}

void Inspector::report_results(std::vector<VisitResult> results) {
  if (!results.empty()) {
    diagnoses_.request(kernel::monotonic_now());
  }
  for (VisitResult& result : results) {
    schedule_.make_due(*result.guarded);
    reports_.result(std::move(result));
  }
}

void Inspector::maintain_units_and_locks() {
  if (!std::exchange(is_new_survey_, false)) {
    return;
  }
  act([this] { report_results(upkeep_.maintain(*survey_)); });
}

// Probes one container only, so that new tasks are handled in between.
void Inspector::probe_next(std::uint64_t now) {
  schedule_.start_round_if_due(now);
  const GuardedContainerPtr guarded = schedule_.find_due(now);
  if (!guarded || is_leaving_) {
    filters_.reset();
    return;
  }
  const std::uint64_t worked = kernel::thread_cpu_now();
  if (!filters_) {
    filters_.emplace(host_, *bpf_);
  }
  InsideView view = probe_inside({host_, *filters_, *prober_}, guarded, survey_->inventory);
  const std::uint64_t probed = kernel::monotonic_now();
  if (schedule_.has_probed(view, probed, kernel::thread_cpu_now() - worked)) {
    diagnoses_.request(probed);
  }
  std::vector<VisitResult> results;
  act([&] { upkeep_.recreate_nodes(view, results); });
  reports_.view(std::move(view));
  report_results(std::move(results));
}

void Inspector::diagnose_if_due(std::uint64_t now) {
  if (now < diagnoses_.next() || !reports_.diagnose || schedule_.next_due() <= now || is_leaving_) {
    return;
  }
  is_requested_ = false;
  const std::uint64_t worked = cpu_with_children();
  Result<std::vector<report::Finding>> findings = reports_.diagnose();
  diagnoses_.has_taken(now, kernel::monotonic_now(), cpu_with_children() - worked);
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
  const std::uint64_t probe = std::min(schedule_.next_due(), schedule_.next_round());
  return is_new_survey_ ? 0 : std::min(probe, diagnoses_.next());
}

}  // namespace hf::guard
