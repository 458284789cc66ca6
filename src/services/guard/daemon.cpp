#include "services/guard/daemon.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <map>
#include <thread>

#include <unistd.h>

#include "adapters/journal/status.h"
#include "adapters/ledger/ledger.h"
#include "core/base/text.h"
#include "host/evidence.h"
#include "host/writer.h"
#include "kernel/cgroup/device_v1.h"
#include "kernel/cgroup/exchange_note.h"
#include "kernel/files/clock.h"
#include "kernel/files/file.h"
#include "kernel/net/event_loop.h"
#include "kernel/process/process.h"
#include "kernel/process/signals.h"
#include "kernel/watch/watch.h"
#include "services/guard/event_flood.h"
#include "services/guard/guard.h"
#include "services/guard/inspector.h"
#include "services/guard/newcomers.h"
#include "services/guard/recorder_thread.h"
#include "services/guard/startup.h"
#include "services/guard/survey_thread.h"

namespace hf::guard {
namespace {

using container::Event;
using container::EventKind;
using container::Tier;

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSweepPause = 30'000 * kMillisecond;  // between reads of every cgroup, whatever the events say
constexpr std::uint64_t kFastPoll = 50 * kMillisecond;        // where the kernel sends no events: after a change
constexpr std::uint64_t kSlowPoll = 1'000 * kMillisecond;     // and when nothing happens

constexpr std::uint64_t kVisitTime = kMillisecond;  // of visits that a survey asks for, between looking for events
constexpr std::chrono::milliseconds kShutdownLimit{500};
constexpr std::chrono::milliseconds kFloodPause{1};  // then the loop takes many events at once

Shielding open_shielding(const kernel::Host& host, kernel::Filters& filters) {
  Result<kernel::Shield> shield = kernel::Shield::open(host, filters);
  return shield ? Shielding(*std::move(shield), "") : Shielding(std::nullopt, shield.error().message);
}

class Loop {
 public:
  Loop(const kernel::Host& host, const DaemonSettings& settings)
      : host_(host),
        settings_(settings),
        bpf_(kernel::open_kernel_bpf()),
        filters_(host, *bpf_),
        watch_(kernel::Watch::open(host, *bpf_, settings.at_most)),
        shielding_(open_shielding(host, filters_)),
        recorder_(host, settings.callbacks, initial_snapshot(host, settings, watch_.tiers())),
        guard_(filters_, shielding_, guard_callbacks()),
        signals_(kernel::open_signals()),
        inspector_(host, inspector_reports()),
        newcomers_(host, settings.config,
                   {[this](const GuardedContainerPtr& guarded) { add_newcomer(guarded); }, settings.newcomer}),
        survey_thread_(host, settings.config, reports()) {
    const Result<kernel::Process> self = kernel::read_process(host, container::Pid{::getpid()});
    guard_.set_started(self ? self->started_at : 0);
    set_policy(settings.config.policy);
    const config::JournalSettings journal = settings.config.journal;
    recorder_.post([journal](Recorder& recorder) { recorder.open_journal(journal.directory, journal.size); });
    kernel::remove_stale_scratch_cgroups(host);
    (void)ledger::make_directory(host);  // so that it can be watched from the start
    for (const std::string& line : kernel::finish_exchanges(host, filters_)) {
      settings_.callbacks.log("lock-interrupted cgroup=" + quote(line), true);
    }
    if (settings.offer_census) {
      settings.offer_census([this] { survey_thread_.request(SurveyScope::changes); });
    }
    watch_directories();
    log_tiers(settings_, watch_.tiers(), shielding_.why_absent());
    if (const Result<void> written = write_status_file(host, settings_, watch_.tiers()); !written) {
      settings_.callbacks.log("no-status error=" + quote(written.error().message), true);
    }
  }

  Result<void> run() {
    TRY(loop_.watch(watch_.descriptor(), [] {}));  // it only wakes the loop, which takes events after every wait
    TRY(loop_.watch(signals_.get(), [this] { act_on_signals(); }));
    while (!stops_) {
      if (flood_.is_flooded()) {
        std::this_thread::sleep_for(kFloodPause);
      }
      loop_.run_until(next_due());
      const std::uint64_t now = kernel::monotonic_now();
      take_events(now);
      if (now >= next_sweep_) {
        sweep(now);
      }
      next_waiting_ = guard_.visit_waiting(now);
      visit_surveyed();
      send_heartbeat(now);
    }
    settings_.notify("STOPPING=1");
    return {};
  }

  // A container whose file system hangs could block a thread that only reads: such a thread is not waited for.
  void shut_down() {
    if (settings_.offer_census) {
      settings_.offer_census({});
    }
    recorder_.finish();
    journal::remove_run_file(host_, journal::kStatusFile);
    ledger::remove_empty_directory(host_);
    newcomers_.thread().request_end();
    survey_thread_.thread().request_end();
    inspector_.request_end();
    const auto deadline = std::chrono::steady_clock::now() + kShutdownLimit;
    const bool has_ended = newcomers_.thread().has_ended_by(deadline) && survey_thread_.thread().has_ended_by(deadline);
    if (!inspector_.has_ended_by(deadline) || !has_ended) {
      ::_exit(0);
    }
  }

 private:
  // Where the kernel did not describe the writer, /proc does while the process is alive; one that writes only once ends
  // soon.
  bool identify_while_alive(container::Writer& writer) const {
    const bool is_described = !writer.parents.empty() && !writer.parents.front().name.empty();
    if (writer.is_known() && !is_described) {
      host::identify(host_, writer);
      return true;
    }
    return false;
  }

  Guard::Callbacks guard_callbacks() {
    Guard::Callbacks callbacks;
    callbacks.report_visit = [this](VisitResult result) {
      watch_.describe_writer(result.event);
      result.is_identified = identify_while_alive(result.event.writer);
      if (result.drift.is_loss() || result.action != report::Action::none) {
        inspector_.request_diagnosis();
      }
      recorder_.post([result = std::move(result)](Recorder& recorder) { recorder.record(result); });
    };
    callbacks.report_shield = [this](ShieldReport report) {
      recorder_.post([report = std::move(report)](Recorder& recorder) { recorder.record(report); });
    };
    callbacks.watch = [this](const kernel::CgroupsPtr& cgroups, const kernel::ProcessHandle& process) {
      return watch_.add(cgroups, process);
    };
    callbacks.unwatch = [this](const kernel::CgroupsOfProcess& cgroups) { watch_.remove(cgroups); };
    callbacks.clock = kernel::monotonic_now;
    return callbacks;
  }

  void set_policy(const container::Policy& policy) {
    guard_.set_limits(policy.limits);
    if (!shielding_.has_shield()) {  // what was lacking at the start, memory for example, may be available now
      shielding_ = open_shielding(host_, filters_);
    }
    shielding_.set_use(policy.shield);
  }

  // Called from the newcomers thread.
  void add_newcomer(const GuardedContainerPtr& guarded) {
    loop_.post([this, guarded] {
      take_events(kernel::monotonic_now());
      guard_.add_newcomer(guarded);
    });
    survey_thread_.request(SurveyScope::changes);
  }

  SurveyThread::Reports reports() {
    SurveyThread::Reports reports;
    reports.survey = [this](const SurveyPtr& survey, SurveyScope scope) {
      loop_.post([this, survey, scope] { adopt(survey, scope); });
      newcomers_.adopt(survey);
      recorder_.post([survey](Recorder& recorder) { recorder.adopt(survey); });
      inspector_.inspect(survey, scope);
    };
    reports.failed = [this](const std::string& why) {
      recorder_.post([why](Recorder& recorder) { recorder.fail_survey(why); });
    };
    reports.refresh = [this](const config::Config& config) { refresh(config); };
    reports.census = settings_.census;
    return reports;
  }

  Inspector::Reports inspector_reports() {
    Inspector::Reports reports;
    reports.view = [this](const InsideView& view) {
      recorder_.post([view](Recorder& recorder) { recorder.set_view(view); });
    };
    reports.result = [this](const VisitResult& result) {
      recorder_.post([result](Recorder& recorder) { recorder.record(result); });
    };
    reports.findings = [this](const std::vector<report::Finding>& findings, std::uint64_t began_at) {
      recorder_.post([findings, began_at](Recorder& recorder) { recorder.set_findings(findings, began_at); });
    };
    reports.reloaded = [this] {
      loop_.post([this] {
        ++counts_[to_string(EventKind::reload)];
        next_sweep_ = 0;
        survey_thread_.request(SurveyScope::everything);
      });
    };
    reports.diagnose = settings_.diagnose;
    return reports;
  }

  // Called after every survey: a directory may be created later, or recreated.
  void watch_directories() {
    const std::string allocations = settings_.config.kube.root_dir + "/device-plugins";
    for (const char* directory : {"/run/holdfast/ledger", allocations.c_str(), "/etc/cdi", "/var/run/cdi"}) {
      watch_.add_directory(host_, directory);
    }
  }

  void refresh(const config::Config& config) const {
    const Result<bool> written = settings_.refresh ? settings_.refresh(config) : Result<bool>(false);
    if (!written) {
      settings_.callbacks.log("no-spec file=" + quote(config.cdi.file) + " error=" + quote(written.error().message),
                              true);
    } else if (*written) {
      settings_.callbacks.log("spec-written file=" + quote(config.cdi.file), false);
    }
  }

  // Adopting a survey visits containers, as adding a newcomer does. Pending events are handled first: they name the
  // writer of a change, which a visit cannot.
  void adopt(const SurveyPtr& survey, SurveyScope scope) {
    take_events(kernel::monotonic_now());
    if (survey->config != config_number_) {
      return;  // it was under way when the config changed, and would bring the old policy back
    }
    guard_.adopt(*survey);
    is_releasing_ = is_releasing_ || scope == SurveyScope::everything;
    watch_directories();
    if (!is_ready_) {
      is_ready_ = true;
      settings_.notify("READY=1\nSTATUS=guarding " + std::to_string(guard_.size()) + " cgroups");
      settings_.callbacks.log("ready containers=" + std::to_string(survey->guarded_containers.size()), false);
    }
  }

  void visit_surveyed() {
    has_visited_all_ = guard_.visit_surveyed(kernel::monotonic_now() + kVisitTime);
    if (has_visited_all_ && std::exchange(is_releasing_, false)) {
      guard_.release_unused();
    }
  }

  void take_events(std::uint64_t now) {
    events_.clear();
    watch_.take(events_);
    flood_.count(events_.size(), now);
    for (const Event& event : events_) {
      if (stops_) {
        return;
      }
      act_on(event);
      act_on_signals();  // a burst of events takes seconds
    }
    for (const Event& event : events_) {  // counted after they were handled, which is urgent
      ++counts_[to_string(event.kind)];
    }
  }

  void act_on(const Event& event) {
    switch (event.kind) {
      case EventKind::attach:
      case EventKind::detach:
      case EventKind::write:
      case EventKind::found_changed: guard_.act_on(event); break;
      case EventKind::lost:
        next_sweep_ = 0;
        survey_thread_.request(SurveyScope::changes);
        break;
      case EventKind::cgroup_gone:
      case EventKind::process_gone:
        guard_.act_on(event);
        survey_thread_.request(SurveyScope::changes);
        break;
      case EventKind::cgroup_joined:
      case EventKind::cgroup_made:
        if (!event.cgroup || !guard_.knows(event.hierarchy, *event.cgroup)) {
          newcomers_.examine_soon(event);
        }
        survey_thread_.request(SurveyScope::changes);
        break;
      case EventKind::reload: next_sweep_ = 0; break;
      case EventKind::drivers:
      case EventKind::evidence: survey_thread_.request(SurveyScope::everything); break;
    }
  }

  void sweep(std::uint64_t now) {
    std::vector<Event> changes;
    watch_.sweep(changes);
    for (const Event& event : changes) {
      ++counts_[to_string(event.kind)];
      act_on(event);
    }
    poll_pause_ = changes.empty() ? std::min(kSlowPoll, poll_pause_ + poll_pause_ / 4) : kFastPoll;
    const bool sees_cgroups = watch_.tiers().v2 == Tier::tracepoints;
    next_sweep_ = now + (watch_.tiers().polls() || !sees_cgroups ? poll_pause_ : kSweepPause);
  }

  void act_on_signals() {
    while (const std::optional<kernel::Signal> signal = kernel::read_signal(signals_)) {
      if (*signal == kernel::Signal::end) {
        stops_ = true;
        return;
      }
      settings_.notify("RELOADING=1");
      const Result<config::Config> config = settings_.reload();
      if (config) {
        set_policy(config->policy);
        survey_thread_.set_config(*config, ++config_number_);
        newcomers_.set_config(*config);
        if (settings_.reloaded) {
          settings_.reloaded(*config);
        }
        settings_.callbacks.log("config-read", false);
      } else {
        settings_.callbacks.log("config-refused error=" + quote(config.error().message), true);
      }
      settings_.notify("READY=1");
    }
  }

  void send_heartbeat(std::uint64_t now) {
    if (now >= next_heartbeat_) {
      next_heartbeat_ = now + std::uint64_t(settings_.heartbeat.count()) * kMillisecond;
      settings_.notify("WATCHDOG=1");
      if (!journal::renew_run_file(host_, journal::kStatusFile)) {
        (void)write_status_file(host_, settings_, watch_.tiers());
      }
    }
    if (now >= next_count_ && !counts_.empty()) {
      next_count_ = now + 1'000 * kMillisecond;
      recorder_.post([counts = std::exchange(counts_, {})](Recorder& recorder) { recorder.count(counts); });
    }
  }

  [[nodiscard]] std::uint64_t next_due() const {
    if (!has_visited_all_) {
      return 0;
    }
    const std::uint64_t work = std::min(next_sweep_, next_waiting_.value_or(next_sweep_));
    return std::min(work, next_heartbeat_);
  }

  const kernel::Host& host_;
  const DaemonSettings& settings_;
  std::unique_ptr<kernel::Bpf> bpf_;
  kernel::Filters filters_;
  kernel::Watch watch_;
  Shielding shielding_;
  kernel::EventLoop loop_;
  RecorderThread recorder_;
  Guard guard_;
  kernel::Fd signals_;
  bool stops_ = false;
  bool is_ready_ = false;
  bool has_visited_all_ = true;
  bool is_releasing_ = false;  // after these visits, what no container uses any longer
  std::vector<Event> events_;
  std::map<std::string, std::uint64_t> counts_;
  EventFlood flood_;
  std::uint64_t config_number_ = 0;  // how often the config was read again
  std::uint64_t next_sweep_ = 0;
  std::uint64_t poll_pause_ = kFastPoll;
  std::optional<std::uint64_t> next_waiting_;
  std::uint64_t next_heartbeat_ = 0;
  std::uint64_t next_count_ = 0;
  Inspector inspector_;  // the last three: their threads call all of the above
  Newcomers newcomers_;
  SurveyThread survey_thread_;
};

}  // namespace

Result<void> run_daemon(const kernel::Host& host, const DaemonSettings& settings) {
  kernel::raise_descriptor_limit();
  Loop loop(host, settings);
  raise_priority();
  const Result<void> ran = loop.run();
  loop.shut_down();
  return ran;
}

}  // namespace hf::guard
