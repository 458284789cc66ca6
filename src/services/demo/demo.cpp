#include "services/demo/demo.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "adapters/journal/run_file.h"
#include "core/base/text.h"
#include "core/report/blame.h"
#include "kernel/files/clock.h"
#include "render/demo.h"
#include "render/text_table.h"
#include "render/time.h"
#include "services/demo/attack.h"
#include "services/demo/guard_process.h"
#include "services/demo/interrupts.h"
#include "services/demo/temporary_directory.h"
#include "services/demo/trial.h"
#include "services/demo/workload.h"

namespace hf::demo {
namespace {

using container::Hierarchy;
using report::DemoContainer;
using report::kBold;
using report::kGreen;
using report::kRed;
using report::marked;
using std::chrono::milliseconds;

constexpr milliseconds kAccessLimit{5'000};   // until the program inside sees a change
constexpr milliseconds kAttackLimit{10'000};  // of one attack
constexpr milliseconds kBetweenAttacks{80};   // like real updates, only more often
constexpr milliseconds kDownloadLimit{12'000};
constexpr milliseconds kShowLoss{1'000};    // how long an unguarded loss is shown
constexpr milliseconds kQuietStart{4'000};  // before the first attack: earlier changes count as part of the start
constexpr milliseconds kRecordDelay{500};   // the guard writes its records a little later than it acts
constexpr std::size_t kMostEvidence = 3;

std::string hierarchy_name(Hierarchy hierarchy) { return hierarchy == Hierarchy::v1 ? "cgroup v1" : "cgroup v2"; }

class Demonstration {
 public:
  Demonstration(const kernel::Host& host, kernel::Filters& filters, const Settings& settings, std::string directory)
      : settings_(settings), setup_{host, filters, std::move(directory), find_gpu(host)}, daemon_(find_daemon()) {}
  Demonstration(const Demonstration&) = delete;
  Demonstration& operator=(const Demonstration&) = delete;
  ~Demonstration() {
    if (guard_) {
      guard_->end();
    }
  }

  Result<report::DemoReport> run() {
    TRY(check_preconditions());
    report_.kernel = kernel::read_kernel_release(setup_.host).value_or("");
    report_.layout = layout_of(setup_.host);
    const Result<void> done = run_steps();
    if (!done && !interrupts_.is_interrupted()) {
      return std::unexpected(done.error());
    }
    report_.is_interrupted = !done;
    for (Trial& trial : trials_) {
      report_.containers.push_back(std::move(trial.figures));
    }
    return std::move(report_);
  }

 private:
  Result<void> check_preconditions() {
    if (daemon_.empty()) {
      return fail(std::errc::no_such_file_or_directory,
                  "find holdfastd: neither beside holdfast nor in $PATH; it is the guard of this demonstration");
    }
    if (const std::optional<container::Pid> other = journal::holder_of_host_lock(setup_.host)) {
      return fail(std::errc::device_or_resource_busy,
                  "holdfastd runs on this host already (pid " + std::to_string(other->value) +
                      "): it would repair what is to be shown broken first. Stop it "
                      "for a minute: 'systemctl stop holdfastd; holdfast demo; systemctl start holdfastd'");
    }
    return {};
  }

  Result<void> run_steps() {
    TRY(create_containers());
    TRY(attack_unguarded());
    TRY(show_diagnosis());
    TRY(switch_guard_on());
    TRY(attack_guarded());
    return {};
  }

  Result<void> check_interrupts() {
    return interrupts_.is_interrupted() ? fail(std::errc::interrupted, "interrupted") : Result<void>();
  }

  void say(const std::string& line) const { settings_.say(line); }

  // ---- 1: containers with a GPU ----

  Result<void> create_containers() {
    say(marked(kBold, "1  A container gets a GPU, the way NVIDIA's hook gives it: behind the runtime's back"));
    const std::vector<Runtime> found = find_runtimes();
    for (const Hierarchy hierarchy : {Hierarchy::v1, Hierarchy::v2}) {
      TRY(check_interrupts());
      if (!setup_.host.mount_of(hierarchy)) {
        continue;
      }
      std::vector<Runtime> runtimes = found;
      if (hierarchy == Hierarchy::v1) {
        add_old_runc(runtimes);
      } else {
        std::erase_if(runtimes, loses_devices_at_update);
      }
      Trial trial;
      trial.workload = TRY(Workload::start(setup_, hierarchy, runtimes));
      TRY(trial.workload->give_gpu());
      TRY(wait_for_access(trial));
      trial.attacks = attacks_on(*trial.workload, setup_.gpu);
      trial.figures = describe(*trial.workload, setup_.gpu);
      show(trial.figures);
      trials_.push_back(std::move(trial));
    }
    return {};
  }

  void add_old_runc(std::vector<Runtime>& runtimes) {
    const bool has_one = std::ranges::any_of(runtimes, loses_devices_at_update);
    if (has_one || !settings_.may_download || runtimes.empty()) {
      return;
    }
    settings_.draw("   looking for a runc with the fault in this machine's package sources …");
    Result<Runtime> old = fetch_old_runc(setup_.directory + "/apt", kDownloadLimit);
    settings_.draw("");
    if (old) {
      runtimes.insert(runtimes.begin(), *std::move(old));
    } else {
      say("   no runc with the fault can be had (" + old.error().message + "): what it writes is written without it");
    }
  }

  void show(const DemoContainer& figures) const {
    say("   " + figures.id + ": " + hierarchy_name(figures.hierarchy) + ", " + figures.launcher + ", " +
        join(figures.nodes, " ") + (figures.is_stand_in ? " (stand-ins: this machine has no NVIDIA GPU)" : ""));
    for (const std::string& note : figures.notes) {
      say("     " + note);
    }
    say("     the program inside opens " + figures.nodes.front() + " every 100 µs: " + marked(kGreen, "let through"));
  }

  // Waits until an open that began after this call was let through.
  Result<void> wait_for_access(const Trial& trial) {
    const std::uint64_t since = kernel::monotonic_now();
    const Counts& counts = trial.workload->tally().counts();
    if (!wait_until([&] { return counts.last_good_at.load() > since; })) {
      TRY(check_interrupts());
      return fail(std::errc::operation_not_permitted,
                  trial.workload->id() + ": the program inside cannot open its GPU (" +
                      (counts.opens.load() == 0 ? "it does not run" : std::strerror(counts.error.load())) + ")");
    }
    return {};
  }

  template <class Condition>
  bool wait_until(const Condition& condition) {
    constexpr milliseconds kStep{1};
    const auto deadline = std::chrono::steady_clock::now() + kAccessLimit;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline || !interrupts_.pause(kStep)) {
        return false;
      }
    }
    return true;
  }

  // ---- 2: lost ----

  Result<void> attack_unguarded() {
    if (!interrupts_.pause(kQuietStart)) {
      return fail(std::errc::interrupted, "interrupted");
    }
    say("");
    say(marked(kBold, "2  Another process applies the container's config again, which lists no GPU"));
    for (Trial& trial : trials_) {
      const Attack& attack = trial.attacks.front();
      const std::uint64_t since = kernel::monotonic_now();
      TRY(kernel::run(attack.command, kAttackLimit));
      const Counts& counts = trial.workload->tally().counts();
      if (!wait_until([&] { return counts.last_refused_at.load() > since; })) {
        TRY(check_interrupts());
        return fail(std::errc::operation_not_supported, trial.workload->id() + ": the attack took nothing from it");
      }
      trial.lost_since = counts.last_refused_at.load();
      trial.figures.attack = attack.description;
      trial.figures.refusal = counts.error.load() == EPERM ? "EPERM" : std::strerror(counts.error.load());
      say("   " + trial.figures.id + ": " + attack.description);
      say("     open(\"" + trial.figures.nodes.front() + "\") = " + marked(kRed, trial.figures.refusal));
    }
    if (!interrupts_.pause(kShowLoss)) {
      return fail(std::errc::interrupted, "interrupted");
    }
    for (const Trial& trial : trials_) {
      const Counts& counts = trial.workload->tally().counts();
      const std::string state =
          counts.last_good_at.load() < trial.lost_since ? "still refused, for good" : "back again";
      say("   " + trial.figures.id + ": " + report::render_duration(kernel::monotonic_now() - trial.lost_since) +
          " later " + state);
    }
    return {};
  }

  // ---- 3: explained ----

  Result<void> show_diagnosis() {
    say("");
    say(marked(kBold, "3  holdfast doctor explains"));
    for (Trial& trial : trials_) {
      TRY(check_interrupts());
      const report::DoctorReport report = TRY(settings_.diagnose(trial.workload->id()));
      const auto denied = std::ranges::find_if(report.findings, report::is_denied);
      const auto shown = denied == report.findings.end() ? report.findings.begin() : denied;
      if (shown == report.findings.end()) {
        return fail(std::errc::invalid_argument, trial.workload->id() + ": the doctor finds nothing");
      }
      trial.figures.finding = *shown;
      show(*shown);
    }
    return {};
  }

  void show(const report::Finding& finding) const {
    say("   " + marked(kRed, finding.code + " " + to_string(finding.severity)) + " " + finding.subject + ": " +
        sentence_of(finding));
    for (std::size_t i = 0; i < std::min(finding.evidence.size(), kMostEvidence); ++i) {
      say("       " + finding.evidence[i]);
    }
    if (!finding.cure.empty()) {
      say("     cure: " + finding.cure.front());
    }
  }

  // ---- 4: the guard ----

  Result<void> switch_guard_on() {
    say("");
    say(marked(kBold, "4  The guard is switched on"));
    std::vector<std::string> ids;
    ids.reserve(trials_.size());
    for (const Trial& trial : trials_) {
      ids.push_back(trial.workload->id());
    }
    const std::uint64_t started = kernel::monotonic_now();
    guard_.emplace(TRY(GuardProcess::start(daemon_, setup_.directory, ids)));
    TRY(guard_->wait_until_ready(interrupts_));
    report_.watching = guard_->watching();
    for (Trial& trial : trials_) {
      TRY(wait_for_access(trial));
      const std::uint64_t now = kernel::monotonic_now();
      trial.figures.lost_ns = now - trial.lost_since;
      say("   " + trial.figures.id + ": " + marked(kGreen, "given back") + " " +
          report::render_duration(now - started) + " after holdfastd was started; nothing was restarted");
    }
    say("   it hears of changes by: " + report_.watching);
    return {};
  }

  // ---- 5: attacked again and again ----

  Result<void> attack_guarded() {
    say("");
    say(marked(kBold, "5  The same attack " +
                          (settings_.length == Length::once
                               ? std::string("again, once of each kind")
                               : "again and again for " + std::to_string(settings_.guarded.count()) + " s")));
    if (!interrupts_.pause(kRecordDelay)) {
      return fail(std::errc::interrupted, "interrupted");
    }
    (void)guard_->take_records();  // drops those of the losses that it found when it started
    for (const Trial& trial : trials_) {
      trial.workload->tally().reset();
    }
    say(report::head_of_timeline());
    began_ = kernel::monotonic_now();
    const Result<void> done = settings_.length == Length::once ? attack_each_once() : attack_for_a_while();
    report_.guarded_ms = (kernel::monotonic_now() - began_) / 1'000'000;
    for (Trial& trial : trials_) {
      trial.figures.seen = trial.workload->tally().read();
    }
    (void)interrupts_.pause(kRecordDelay);
    take_records();
    print_progress();
    return done;
  }

  Result<void> attack_each_once() {
    for (Trial& trial : trials_) {
      for (std::size_t i = 0; i < trial.attacks.size(); ++i) {
        TRY(attack(trial));
      }
    }
    return {};
  }

  Result<void> attack_for_a_while() {
    const std::uint64_t end = began_ + std::uint64_t(std::chrono::nanoseconds(settings_.guarded).count());
    std::uint64_t printed = 0;
    for (std::size_t turn = 0; kernel::monotonic_now() < end; ++turn) {
      TRY(attack(trials_[turn % trials_.size()]));
      take_records();
      const report::DemoMoment now = moment();
      if (now.seconds > printed) {
        printed = now.seconds;
        print_progress();
      } else {
        settings_.draw(report::render_line(now));
      }
    }
    settings_.draw("");
    return {};
  }

  // Runs one attack, and counts whether the program inside can open its GPU within kAccessLimit afterwards.
  Result<void> attack(Trial& trial) {
    const Attack& attack = trial.attacks[trial.next++ % trial.attacks.size()];
    const auto next = std::chrono::steady_clock::now() + kBetweenAttacks;
    // Old runcs read back what they wrote, and fail where the guard was faster.
    const Result<std::string> done = kernel::run(attack.command, kAttackLimit);
    const std::uint64_t since = kernel::monotonic_now();
    ++trial.figures.attacks[attack.description];
    trial.figures.overtaken += done ? 0 : 1;
    const Counts& counts = trial.workload->tally().counts();
    if (wait_until([&] { return counts.last_good_at.load() > since; })) {
      ++trial.figures.repaired;
    } else if (!guard_->is_alive()) {
      return fail(std::errc::no_such_process, "the guard has ended: " + guard_->last_output_line());
    }
    const auto left = next - std::chrono::steady_clock::now();
    (void)interrupts_.pause(std::max(std::chrono::nanoseconds(left), std::chrono::nanoseconds(0)));
    return check_interrupts();
  }

  void take_records() {
    for (const report::BlameRecord& record : guard_->take_records()) {
      if (add_record(trials_, record)) {
        last_writer_ = title_of(record.writer);
      }
    }
  }

  void print_progress() {
    std::string line = report::render_line(moment());
    if (line != last_line_) {
      say(line);
      last_line_ = std::move(line);
    }
  }

  [[nodiscard]] report::DemoMoment moment() const {
    const std::uint64_t seconds = (kernel::monotonic_now() - began_) / 1'000'000'000;
    report::DemoMoment moment = sum_of(trials_);
    moment.seconds = seconds;
    moment.last_writer = last_writer_;
    return moment;
  }

  Interrupts interrupts_;
  const Settings& settings_;
  DemoSetup setup_;
  std::string daemon_;
  report::DemoReport report_;
  std::vector<Trial> trials_;
  std::optional<GuardProcess> guard_;  // ends before the containers do
  std::uint64_t began_ = 0;
  std::string last_writer_;
  std::string last_line_;
};

}  // namespace

Result<report::DemoReport> run_demo(const host::OpenHost& open, const Settings& settings) {
  const TemporaryDirectory directory = TRY(TemporaryDirectory::make());
  Demonstration demonstration(open.host, open.filters, settings, directory.path());
  return demonstration.run();
}

}  // namespace hf::demo
