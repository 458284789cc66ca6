#include "services/guard/daemon.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>
#include <thread>

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "adapters/journal/status.h"
#include "adapters/ledger/ledger.h"
#include "core/base/text.h"
#include "kernel/clock.h"
#include "kernel/device_v1.h"
#include "kernel/exchange_note.h"
#include "kernel/file.h"
#include "kernel/process.h"
#include "kernel/watch.h"
#include "node/evidence.h"
#include "node/writer.h"
#include "services/guard/guard.h"
#include "services/guard/inspector.h"
#include "services/guard/mailbox.h"
#include "services/guard/newcomers.h"
#include "services/guard/scout.h"

namespace hf::guard {
namespace {

using container::Event;
using container::EventKind;
using container::Tier;

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSweepPause = 30'000 * kMillisecond;  // a look at everything, whatever the events say
constexpr std::uint64_t kFastPoll = 50 * kMillisecond;        // where there are no events: after a change
constexpr std::uint64_t kSlowPoll = 1'000 * kMillisecond;     // and when nothing happens

constexpr std::chrono::milliseconds kLongestLeave{500};
constexpr std::uint64_t kFloodTime = 100 * kMillisecond;
constexpr std::size_t kFlood = 500;  // events in that time
constexpr std::chrono::milliseconds kNap{1};

// The recorder with a thread of its own.
class RecorderThread {
 public:
  RecorderThread(const kernel::Host& host, const Outlets& outlets, const report::Snapshot& first)
      : recorder_(host, outlets, first), thread_([this] { work(); }) {}
  RecorderThread(const RecorderThread&) = delete;
  RecorderThread& operator=(const RecorderThread&) = delete;
  ~RecorderThread() { finish(); }

  // Writes down what it has; what comes later is lost.
  void finish() {
    mailbox_.post([this] { stops_ = true; });
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  void post(std::function<void(Recorder&)> work) {
    mailbox_.post([this, work = std::move(work)] { work(recorder_); });
  }

 private:
  void work() {
    ::prctl(PR_SET_NAME, "hf-recorder");
    while (!stops_) {
      pollfd waiting{mailbox_.descriptor(), POLLIN, 0};
      (void)::poll(&waiting, 1, is_calm_ ? 5'000 : 25);
      const std::vector<Mailbox::Letter> letters = mailbox_.take();
      for (const Mailbox::Letter& letter : letters) {
        letter();
      }
      const std::uint64_t now = kernel::monotonic_now();
      busy_until_ = letters.empty() ? busy_until_ : now + 1'000 * kMillisecond;
      is_calm_ = now > busy_until_;
      recorder_.tick(now);
    }
    recorder_.flush();
  }

  Recorder recorder_;
  Mailbox mailbox_;
  bool stops_ = false;
  bool is_calm_ = false;
  std::uint64_t busy_until_ = 0;
  std::thread thread_;
};

kernel::Fd open_signals() {
  sigset_t set{};
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    ::sigaddset(&set, signal);
  }
  return kernel::Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

// Ahead of everything that is not in a hurry: a loss lasts as long as this thread waits for a CPU. It never works for
// long, and children and threads of it start as everybody does.
void come_first() {
  sched_param priority{};
  priority.sched_priority = 1;
  (void)::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority);
}

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
        recorder_(host, settings.outlets, first_picture()),
        guard_(filters_, shielding_, guard_outlets()),
        signals_(open_signals()),
        inspector_(host, inspector_reports()),
        newcomers_(host, settings.config, [this](const WardPtr& ward) { welcome(ward); }),
        scout_(host, settings.config, reports()) {
    const Result<kernel::Process> self = kernel::read_process(host, container::Pid{::getpid()});
    guard_.set_started(self ? self->started_at : 0);
    set_policy(settings.config.policy);
    const config::JournalSettings journal = settings.config.journal;
    recorder_.post([journal](Recorder& recorder) { recorder.open_journal(journal.folder, journal.size); });
    kernel::remove_old_scratches(host);
    (void)ledger::make_folder(host);  // so that it can be watched from the start
    for (const std::string& line : kernel::finish_exchanges(host, filters_)) {
      settings_.outlets.log("lock-interrupted cgroup=" + quote(line), true);
    }
    watch_folders();
    log_tiers();
    say_who_we_are();
  }

  void run() {
    while (!stops_) {
      wait();
      const std::uint64_t now = kernel::monotonic_now();
      take_events(now);
      for (const Mailbox::Letter& letter : mailbox_.take()) {
        letter();
      }
      take_signals();
      if (now >= next_sweep_) {
        sweep(now);
      }
      next_waiting_ = guard_.visit_waiting(now);
      beat(now);
    }
    settings_.notify("STOPPING=1");
  }

  // A container whose file system hangs would keep us: nobody waits for those who only read.
  void leave() {
    recorder_.finish();
    journal::remove_status(host_);
    ledger::remove_empty_folder(host_);
    const bool has_ended = newcomers_.ends_within(kLongestLeave) && scout_.ends_within(kLongestLeave);
    if (!inspector_.ends_within(kLongestLeave) || !has_ended) {
      ::_exit(0);
    }
  }

 private:
  [[nodiscard]] report::Snapshot first_picture() const {
    report::Snapshot picture;
    picture.version = settings_.version;
    picture.missing_capabilities = settings_.missing_capabilities;
    picture.kernel = kernel::read_kernel_release(host_).value_or("");
    picture.layout = layout_of(host_);
    std::array<char, 256> name{};
    (void)::gethostname(name.data(), name.size() - 1);
    picture.host_name = name.data();
    picture.started_at = kernel::wall_now();
    picture.tiers = watch_.tiers();
    return picture;
  }

  // Where the kernel did not tell of the writer, /proc does as long as he is there; who only writes once is gone soon.
  bool identify_soon(container::Writer& writer) const {
    const bool is_told = !writer.parents.empty() && !writer.parents.front().name.empty();
    if (writer.is_known() && !is_told) {
      node::identify(host_, writer);
      return true;
    }
    return false;
  }

  Guard::Outlets guard_outlets() {
    Guard::Outlets outlets;
    outlets.tell = [this](Happening happening) {
      watch_.describe_writer(happening.event);
      happening.is_identified = identify_soon(happening.event.writer);
      recorder_.post([happening = std::move(happening)](Recorder& recorder) { recorder.record(happening); });
    };
    outlets.tell_shield = [this](ShieldReport report) {
      recorder_.post([report = std::move(report)](Recorder& recorder) { recorder.record(report); });
    };
    outlets.watch = [this](const kernel::CgroupsPtr& cgroups, const kernel::ProcessHandle& process) {
      return watch_.add(cgroups, process);
    };
    outlets.unwatch = [this](const kernel::CgroupsOfProcess& cgroups) { watch_.remove(cgroups); };
    outlets.clock = kernel::monotonic_now;
    return outlets;
  }

  void set_policy(const container::Policy& policy) {
    guard_.set_limits(policy.limits);
    if (!shielding_.has_shield()) {  // what was short at the start, memory for example, may be there now
      shielding_ = open_shielding(host_, filters_);
    }
    shielding_.set_use(policy.shield);
  }

  // A container that has just started: from another thread.
  void welcome(const WardPtr& ward) {
    mailbox_.post([this, ward] { guard_.welcome(ward); });
    scout_.ask(Care::changes);
  }

  Scout::Reports reports() {
    Scout::Reports reports;
    reports.survey = [this](const SurveyPtr& survey, Care care) {
      mailbox_.post([this, survey, care] { adopt(survey, care); });
      newcomers_.adopt(survey);
      recorder_.post([survey](Recorder& recorder) { recorder.adopt(survey); });
      inspector_.inspect(survey, care);
    };
    reports.failed = [this](const std::string& why) {
      recorder_.post([why](Recorder& recorder) { recorder.fail_survey(why); });
    };
    reports.refresh = [this](const config::Config& config) { refresh(config); };
    return reports;
  }

  Inspector::Reports inspector_reports() {
    Inspector::Reports reports;
    reports.view = [this](const View& view) { recorder_.post([view](Recorder& recorder) { recorder.see(view); }); };
    reports.deed = [this](const Deed& deed) { recorder_.post([deed](Recorder& recorder) { recorder.record(deed); }); };
    reports.findings = [this](const std::vector<report::Finding>& findings) {
      recorder_.post([findings](Recorder& recorder) { recorder.set_findings(findings); });
    };
    reports.reloaded = [this] {
      mailbox_.post([this] {
        ++counts_[to_string(EventKind::reload)];
        next_sweep_ = 0;
        scout_.ask(Care::everything);
      });
    };
    reports.diagnose = settings_.diagnose;
    return reports;
  }

  // Again and again: a directory may come later, or be recreated.
  void watch_folders() {
    for (const char* folder : {"/run/holdfast/ledger", "/var/lib/kubelet/device-plugins", "/etc/cdi", "/var/run/cdi"}) {
      watch_.add_folder(host_, folder);
    }
  }

  void refresh(const config::Config& config) const {
    const Result<bool> written = settings_.refresh ? settings_.refresh(config) : Result<bool>(false);
    if (!written) {
      settings_.outlets.log("no-spec file=" + quote(config.cdi.file) + " error=" + quote(written.error().message),
                            true);
    } else if (*written) {
      settings_.outlets.log("spec-written file=" + quote(config.cdi.file), false);
    }
  }

  void say_who_we_are() const {
    const container::Pid own{::getpid()};
    const Result<kernel::Process> process = kernel::read_process(host_, own);
    const journal::Status status{own, process ? process->started_at : 0, settings_.version, watch_.tiers()};
    if (const Result<void> written = journal::write_status(host_, status); !written) {
      settings_.outlets.log("no-status error=" + quote(written.error().message), true);
    }
  }

  void log_tiers() const {
    const container::Tiers& tiers = watch_.tiers();
    std::string line = "watching";
    line += tiers.has_v2 ? " v2=" + to_string(tiers.v2) : "";
    line += tiers.has_v1 ? " v1=" + to_string(tiers.v1) : "";
    settings_.outlets.log(line, false);
    for (const std::string& why : tiers.why) {
      settings_.outlets.log("tier-refused why=" + quote(why), false);
    }
    if (tiers.has_v2 && !shielding_.why_absent().empty()) {
      settings_.outlets.log("no-shield why=" + quote(shielding_.why_absent()), false);
    }
  }

  // A survey has new wards looked at: what has happened to the old ones is heard of first, from those who know the
  // writer.
  void adopt(const SurveyPtr& survey, Care care) {
    take_events(kernel::monotonic_now());
    guard_.adopt(*survey);
    if (care == Care::everything) {
      guard_.release_unused();
    }
    watch_folders();
    if (!is_ready_) {
      is_ready_ = true;
      settings_.notify("READY=1\nSTATUS=guarding " + std::to_string(guard_.size()) + " cgroups");
      settings_.outlets.log("ready containers=" + std::to_string(survey->wards.size()), false);
    }
  }

  void take_events(std::uint64_t now) {
    events_.clear();
    watch_.take(events_);
    measure_flood(now);
    for (const Event& event : events_) {
      act_on(event);
    }
    for (const Event& event : events_) {  // when it is done
      ++counts_[to_string(event.kind)];
    }
  }

  void measure_flood(std::uint64_t now) {
    if (now - counted_since_ > kFloodTime) {
      is_flooded_ = counted_ > kFlood;
      counted_since_ = now;
      counted_ = 0;
    }
    counted_ += events_.size();
  }

  void act_on(const Event& event) {
    switch (event.kind) {
      case EventKind::attach:
      case EventKind::detach:
      case EventKind::write:
      case EventKind::found_changed: guard_.handle(event); break;
      case EventKind::lost:
        next_sweep_ = 0;
        scout_.ask(Care::changes);
        break;
      case EventKind::cgroup_gone:
      case EventKind::process_gone:
        guard_.handle(event);
        scout_.ask(Care::changes);
        break;
      case EventKind::cgroup_joined:
      case EventKind::cgroup_made:
        if (!event.cgroup || !guard_.knows(event.hierarchy, *event.cgroup)) {
          newcomers_.meet(event);
        }
        scout_.ask(Care::changes);
        break;
      case EventKind::reload: next_sweep_ = 0; break;
      case EventKind::drivers:
      case EventKind::evidence: scout_.ask(Care::everything); break;
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
    const bool hears_of_cgroups = watch_.tiers().v2 == Tier::tracepoints;
    next_sweep_ = now + (watch_.tiers().polls() || !hears_of_cgroups ? poll_pause_ : kSweepPause);
  }

  void take_signals() {
    signalfd_siginfo signal{};
    while (::read(signals_.get(), &signal, sizeof(signal)) == ssize_t(sizeof(signal))) {
      if (signal.ssi_signo != SIGHUP) {
        stops_ = true;
        return;
      }
      settings_.notify("RELOADING=1");
      const Result<config::Config> config = settings_.reload();
      if (config) {
        set_policy(config->policy);
        scout_.set_config(*config);
        newcomers_.set_config(*config);
        settings_.outlets.log("config-read", false);
      } else {
        settings_.outlets.log("config-refused error=" + quote(config.error().message), true);
      }
      settings_.notify("READY=1");
    }
  }

  void beat(std::uint64_t now) {
    if (settings_.watchdog.count() > 0 && now >= next_beat_) {
      next_beat_ = now + std::uint64_t(settings_.watchdog.count()) * kMillisecond / 3;
      settings_.notify("WATCHDOG=1");
    }
    if (now >= next_count_ && !counts_.empty()) {
      next_count_ = now + 1'000 * kMillisecond;
      recorder_.post([counts = std::exchange(counts_, {})](Recorder& recorder) { recorder.count(counts); });
    }
  }

  // Whoever makes events by the thousand would have us run for each of them: then many are taken at once.
  void wait() {
    if (is_flooded_) {
      std::this_thread::sleep_for(kNap);
    }
    const std::uint64_t now = kernel::monotonic_now();
    std::uint64_t until = next_sweep_;
    until = std::min(until, next_waiting_.value_or(until));
    until = settings_.watchdog.count() > 0 ? std::min(until, next_beat_) : until;
    timespec patience{};
    if (until > now) {
      patience.tv_sec = time_t((until - now) / 1'000'000'000U);
      patience.tv_nsec = long((until - now) % 1'000'000'000U);
    }
    std::array<pollfd, 3> waiting = {
        {{watch_.descriptor(), POLLIN, 0}, {mailbox_.descriptor(), POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
    (void)::ppoll(waiting.data(), waiting.size(), &patience, nullptr);
  }

  const kernel::Host& host_;
  const DaemonSettings& settings_;
  std::unique_ptr<kernel::Bpf> bpf_;
  kernel::Filters filters_;
  kernel::Watch watch_;
  Shielding shielding_;
  Mailbox mailbox_;
  RecorderThread recorder_;
  Guard guard_;
  kernel::Fd signals_;
  bool stops_ = false;
  bool is_ready_ = false;
  std::vector<Event> events_;
  std::map<std::string, std::uint64_t> counts_;
  std::uint64_t counted_since_ = 0;
  std::size_t counted_ = 0;
  bool is_flooded_ = false;
  std::uint64_t next_sweep_ = 0;
  std::uint64_t poll_pause_ = kFastPoll;
  std::optional<std::uint64_t> next_waiting_;
  std::uint64_t next_beat_ = 0;
  std::uint64_t next_count_ = 0;
  Inspector inspector_;  // the last three: their threads call all of the above
  Newcomers newcomers_;
  Scout scout_;
};

}  // namespace

Result<void> run_daemon(const kernel::Host& host, const DaemonSettings& settings) {
  raise_descriptor_limit();
  Loop loop(host, settings);
  come_first();
  loop.run();
  loop.leave();
  return {};
}

}  // namespace hf::guard
