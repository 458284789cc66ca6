#include "services/demo/demo.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <unistd.h>

#include "core/base/text.h"
#include "core/report/blame.h"
#include "core/report/text_table.h"
#include "kernel/clock.h"
#include "services/demo/attack.h"
#include "services/demo/guard_process.h"
#include "services/demo/interrupts.h"
#include "services/demo/patient.h"

namespace hf::demo {
namespace {

using container::Hierarchy;
using report::DemoContainer;
using report::kBold;
using report::kGreen;
using report::kRed;
using report::marked;
using std::chrono::milliseconds;

constexpr milliseconds kPatience{5'000};      // until the program inside sees a change
constexpr milliseconds kAttackLimit{10'000};  // of one attack
constexpr milliseconds kBetweenAttacks{80};   // as others would: an update now and then, only more often
constexpr milliseconds kDownloadLimit{12'000};
constexpr milliseconds kLook{1'000};       // how long an unguarded loss is looked at
constexpr milliseconds kCalm{4'000};       // before: what changes sooner, the doctor takes for a part of the start
constexpr milliseconds kRecordsCome{500};  // the guard writes its records a little later than it acts
constexpr std::size_t kMostEvidence = 3;

// A folder of ours alone, gone in the end.
class Folder {
 public:
  static Result<Folder> make() {
    std::string path = "/tmp/holdfast-demo-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
      return fail_errno(errno, "make a folder in /tmp");
    }
    return Folder(path);
  }
  Folder(Folder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Folder& operator=(Folder&&) = delete;
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) {
      std::filesystem::remove_all(path_, ignored);
    }
  }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit Folder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

std::string words_for(Hierarchy hierarchy) { return hierarchy == Hierarchy::v1 ? "cgroup v1" : "cgroup v2"; }

// One container with what is told about it.
struct Act {
  std::unique_ptr<Patient> patient;
  std::vector<Attack> attacks;
  std::size_t next = 0;  // attack
  DemoContainer figures;
  std::uint64_t lost_since = 0;
};

class Story {
 public:
  Story(const kernel::Host& host, kernel::Filters& filters, const Settings& settings, std::string folder)
      : settings_(settings), around_{host, filters, std::move(folder), find_gpu(host)}, daemon_(find_daemon()) {}
  Story(const Story&) = delete;
  Story& operator=(const Story&) = delete;
  ~Story() {
    if (guard_) {
      guard_->end();
    }
  }

  Result<report::DemoReport> tell() {
    TRY(check_stage());
    report_.kernel = kernel::read_kernel_release(around_.host).value_or("");
    report_.layout = layout_of(around_.host);
    const Result<void> told = tell_all();
    if (!told && !interrupts_.has_come()) {
      return std::unexpected(told.error());
    }
    report_.is_interrupted = !told;
    for (Act& act : acts_) {
      report_.containers.push_back(std::move(act.figures));
    }
    return std::move(report_);
  }

 private:
  Result<void> check_stage() {
    if (daemon_.empty()) {
      return fail(std::errc::no_such_file_or_directory,
                  "find holdfastd: neither beside holdfast nor in $PATH; it is the guard of this demonstration");
    }
    if (const std::optional<container::Pid> other = find_running_guard(around_.host)) {
      return fail(std::errc::device_or_resource_busy,
                  "holdfastd runs on this node already (pid " + std::to_string(other->value) +
                      "): it would repair what is to be shown broken first. Stop it for a minute");
    }
    return {};
  }

  Result<void> tell_all() {
    TRY(make_containers());
    TRY(attack_unguarded());
    TRY(show_diagnosis());
    TRY(switch_guard_on());
    TRY(attack_guarded());
    return {};
  }

  Result<void> check_interrupts() {
    return interrupts_.has_come() ? fail(std::errc::interrupted, "interrupted") : Result<void>();
  }

  void say(const std::string& line) const { settings_.say(line); }

  // ---- 1: containers with a GPU ----

  Result<void> make_containers() {
    say(marked(kBold, "1  A container gets a GPU, the way NVIDIA's hook gives it: behind the runtime's back"));
    const std::vector<Runtime> found = find_runtimes();
    for (const Hierarchy hierarchy : {Hierarchy::v1, Hierarchy::v2}) {
      TRY(check_interrupts());
      if (!around_.host.mount_of(hierarchy)) {
        continue;
      }
      std::vector<Runtime> runtimes = found;
      if (hierarchy == Hierarchy::v1) {
        add_old_runc(runtimes);
      } else {
        std::erase_if(runtimes, loses_devices_at_update);
      }
      Act act;
      act.patient = TRY(Patient::start(around_, hierarchy, runtimes));
      TRY(act.patient->give_gpu());
      TRY(wait_for_access(act));
      act.attacks = attacks_on(*act.patient, around_.gpu);
      introduce(act);
      acts_.push_back(std::move(act));
    }
    return {};
  }

  void add_old_runc(std::vector<Runtime>& runtimes) {
    const bool has_one = std::ranges::any_of(runtimes, loses_devices_at_update);
    if (has_one || !settings_.may_download || runtimes.empty()) {
      return;
    }
    settings_.draw("   looking for a runc with the fault in this machine's package sources …");
    Result<Runtime> old = fetch_old_runc(around_.folder + "/apt", kDownloadLimit);
    settings_.draw("");
    if (old) {
      runtimes.insert(runtimes.begin(), *std::move(old));
    } else {
      say("   no runc with the fault can be had (" + old.error().message + "): what it writes is written without it");
    }
  }

  void introduce(Act& act) {
    const Patient& patient = *act.patient;
    DemoContainer& figures = act.figures;
    figures.id = patient.id();
    figures.hierarchy = patient.hierarchy();
    figures.launcher = patient.launcher();
    figures.cgroup = patient.cgroup().where;
    figures.is_stand_in = around_.gpu.is_stand_in;
    figures.notes = patient.notes();
    for (const container::WantedNode& node : around_.gpu.nodes) {
      figures.nodes.push_back(node.path);
    }
    say("   " + figures.id + ": " + words_for(figures.hierarchy) + ", " + figures.launcher + ", " +
        join(figures.nodes, " ") + (figures.is_stand_in ? " (stand-ins: this machine has no NVIDIA GPU)" : ""));
    for (const std::string& note : figures.notes) {
      say("     " + note);
    }
    say("     the program inside opens " + figures.nodes.front() + " every 100 µs: " + marked(kGreen, "let through"));
  }

  // Until an open that began after this moment was let through.
  Result<void> wait_for_access(const Act& act) {
    const std::uint64_t since = kernel::monotonic_now();
    const Counts& counts = act.patient->tally().counts();
    if (!wait_until([&] { return counts.last_good_at.load() > since; })) {
      TRY(check_interrupts());
      return fail(std::errc::operation_not_permitted,
                  act.patient->id() + ": the program inside cannot open its GPU (" +
                      (counts.opens.load() == 0 ? "it does not run" : std::strerror(counts.error.load())) + ")");
    }
    return {};
  }

  template <class Condition>
  bool wait_until(const Condition& condition) {
    constexpr milliseconds kStep{1};
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline || !interrupts_.pause(kStep)) {
        return false;
      }
    }
    return true;
  }

  // ---- 2: lost ----

  Result<void> attack_unguarded() {
    if (!interrupts_.pause(kCalm)) {
      return fail(std::errc::interrupted, "interrupted");
    }
    say("");
    say(marked(kBold, "2  Somebody applies the container's config again, in which no GPU is"));
    for (Act& act : acts_) {
      const Attack& attack = act.attacks.front();
      const std::uint64_t since = kernel::monotonic_now();
      TRY(kernel::run(attack.command, kAttackLimit));
      const Counts& counts = act.patient->tally().counts();
      if (!wait_until([&] { return counts.last_refused_at.load() > since; })) {
        TRY(check_interrupts());
        return fail(std::errc::operation_not_supported, act.patient->id() + ": the attack took nothing from it");
      }
      act.lost_since = counts.last_refused_at.load();
      act.figures.attack = attack.words;
      act.figures.refusal = counts.error.load() == EPERM ? "EPERM" : std::strerror(counts.error.load());
      say("   " + act.figures.id + ": " + attack.words);
      say("     open(\"" + act.figures.nodes.front() + "\") = " + marked(kRed, act.figures.refusal));
    }
    if (!interrupts_.pause(kLook)) {
      return fail(std::errc::interrupted, "interrupted");
    }
    for (const Act& act : acts_) {
      const Counts& counts = act.patient->tally().counts();
      const std::string state = counts.last_good_at.load() < act.lost_since ? "still refused, for good" : "back again";
      say("   " + act.figures.id + ": " + report::render_duration(kernel::monotonic_now() - act.lost_since) +
          " later " + state);
    }
    return {};
  }

  // ---- 3: explained ----

  Result<void> show_diagnosis() {
    say("");
    say(marked(kBold, "3  holdfast doctor explains"));
    for (Act& act : acts_) {
      TRY(check_interrupts());
      const report::DoctorReport report = TRY(settings_.diagnose(act.patient->id()));
      const auto denied = std::ranges::find(report.findings, "HF-101", &report::Finding::code);
      const auto shown = denied == report.findings.end() ? report.findings.begin() : denied;
      if (shown == report.findings.end()) {
        return fail(std::errc::invalid_argument, act.patient->id() + ": the doctor finds nothing");
      }
      act.figures.finding = *shown;
      show(*shown);
    }
    return {};
  }

  void show(const report::Finding& finding) const {
    say("   " + marked(kRed, finding.code + " " + to_string(finding.severity)) + " " + finding.subject + ": " +
        finding.verdict);
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
    ids.reserve(acts_.size());
    for (const Act& act : acts_) {
      ids.push_back(act.patient->id());
    }
    const std::uint64_t started = kernel::monotonic_now();
    guard_.emplace(TRY(GuardProcess::start(daemon_, around_.folder, ids)));
    TRY(guard_->wait_until_ready(interrupts_));
    report_.watching = guard_->watching();
    for (Act& act : acts_) {
      TRY(wait_for_access(act));
      const std::uint64_t now = kernel::monotonic_now();
      act.figures.lost_ns = now - act.lost_since;
      say("   " + act.figures.id + ": " + marked(kGreen, "given back") + " " + report::render_duration(now - started) +
          " after holdfastd was started; nothing was restarted");
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
    if (!interrupts_.pause(kRecordsCome)) {
      return fail(std::errc::interrupted, "interrupted");
    }
    (void)guard_->take_records();  // of what it found when it came
    for (const Act& act : acts_) {
      act.patient->tally().start_anew();
    }
    say(report::head_of_timeline());
    began_ = kernel::monotonic_now();
    const Result<void> done = settings_.length == Length::once ? attack_each_once() : attack_for_a_while();
    report_.guarded_ms = (kernel::monotonic_now() - began_) / 1'000'000;
    for (Act& act : acts_) {
      act.figures.seen = act.patient->tally().read();
    }
    (void)interrupts_.pause(kRecordsCome);
    take_records();
    tell_moment();
    return done;
  }

  Result<void> attack_each_once() {
    for (Act& act : acts_) {
      for (std::size_t i = 0; i < act.attacks.size(); ++i) {
        TRY(attack(act));
      }
    }
    return {};
  }

  Result<void> attack_for_a_while() {
    const std::uint64_t end = began_ + std::uint64_t(std::chrono::nanoseconds(settings_.guarded).count());
    std::uint64_t told = 0;
    for (std::size_t turn = 0; kernel::monotonic_now() < end; ++turn) {
      TRY(attack(acts_[turn % acts_.size()]));
      take_records();
      const report::DemoMoment now = moment();
      if (now.seconds > told) {
        told = now.seconds;
        tell_moment();
      } else {
        settings_.draw(report::render_line(now));
      }
    }
    settings_.draw("");
    return {};
  }

  // One attack, and whether the program inside can open its GPU afterwards. No longer, and it stayed lost.
  Result<void> attack(Act& act) {
    const Attack& attack = act.attacks[act.next++ % act.attacks.size()];
    const auto next = std::chrono::steady_clock::now() + kBetweenAttacks;
    // Old runcs read again what they wrote, and complain where the guard was faster.
    const Result<std::string> done = kernel::run(attack.command, kAttackLimit);
    const std::uint64_t since = kernel::monotonic_now();
    ++act.figures.attacks[attack.words];
    act.figures.overtaken += done ? 0 : 1;
    const Counts& counts = act.patient->tally().counts();
    if (wait_until([&] { return counts.last_good_at.load() > since; })) {
      ++act.figures.repaired;
    } else if (!guard_->is_alive()) {
      return fail(std::errc::no_such_process, "the guard has ended: " + guard_->last_words());
    }
    const auto left = next - std::chrono::steady_clock::now();
    (void)interrupts_.pause(std::max(std::chrono::nanoseconds(left), std::chrono::nanoseconds(0)));
    return check_interrupts();
  }

  void take_records() {
    for (const report::BlameRecord& record : guard_->take_records()) {
      const auto act = std::ranges::find_if(acts_, [&](const Act& one) { return one.patient->id() == record.id; });
      if (act == acts_.end() || record.devices.empty()) {
        continue;
      }
      act->figures.held += record.is_shielded ? 1 : 0;
      act->figures.held_opens += record.held_opens;
      last_writer_ = title_of(record.writer);
      ++act->figures.writers[record.writer.is_known() ? record.writer.name : "somebody"];
      if (record.loss_ns) {
        act->figures.losses_ns.push_back(*record.loss_ns);
      }
    }
  }

  void tell_moment() {
    std::string line = report::render_line(moment());
    if (line != last_line_) {
      say(line);
      last_line_ = std::move(line);
    }
  }

  [[nodiscard]] report::DemoMoment moment() const {
    report::DemoMoment moment;
    moment.seconds = (kernel::monotonic_now() - began_) / 1'000'000'000;
    std::vector<std::uint64_t> losses;
    for (const Act& act : acts_) {
      moment.attacks += act.figures.attack_count();
      moment.repaired += act.figures.repaired;
      moment.refused += act.patient->tally().read().refused;
      losses.insert(losses.end(), act.figures.losses_ns.begin(), act.figures.losses_ns.end());
    }
    moment.losses = report::spread_of(std::move(losses));
    moment.last_writer = last_writer_;
    return moment;
  }

  Interrupts interrupts_;
  const Settings& settings_;
  Surroundings around_;
  std::string daemon_;
  report::DemoReport report_;
  std::vector<Act> acts_;
  std::optional<GuardProcess> guard_;  // ends before the containers do
  std::uint64_t began_ = 0;
  std::string last_writer_;
  std::string last_line_;
};

}  // namespace

Result<report::DemoReport> run_demo(const kernel::Host& host, kernel::Filters& filters, const Settings& settings) {
  const Folder folder = TRY(Folder::make());
  const LedgerFolder ledger = TRY(LedgerFolder::make());
  Story story(host, filters, settings, folder.path());
  return story.tell();
}

}  // namespace hf::demo
