#include "services/setup/engine_restart.h"

#include <optional>

#include "core/base/text.h"
#include "kernel/files/file.h"
#include "render/text_diff.h"
#include "services/setup/docker_gpus.h"
#include "services/setup/engines.h"
#include "services/setup/host_file.h"

namespace hf::setup {
namespace {

using report::SetupReport;
using std::chrono::seconds;

constexpr seconds kRestartLimit(120);
constexpr seconds kAskLimit(30);
constexpr int kMostChecks = 30;  // one second apart
constexpr int kCalmChecks = 3;   // systemd starts an engine again that has ended: it must stay active

// The engine's own check of its config. CRI-O reads our drop-in together with its other files.
std::vector<std::string> check_command(const Engine& engine, const std::string& file) {
  if (engine.name == "containerd") {
    return {"containerd", "--config", file, "config", "dump"};
  }
  if (engine.name == "docker") {
    return {"dockerd", "--validate", "--config-file", file};
  }
  return file == engine.file ? std::vector<std::string>{"crio", "config"}
                             : std::vector<std::string>{"crio", "--config", file, "config"};
}

class Restart {
 public:
  Restart(const kernel::Host& host, Engine engine, const EngineSetupOptions& options, const EngineControl& control)
      : host_(host),
        control_(control),
        options_(options),
        engine_(std::move(engine)),
        file_(host, options.file.empty() ? engine_.file : options.file),
        backup_(host, file_.path() + kBackup) {}

  // Has the command until it has succeeded, so that the next call repeats a restart that failed.
  [[nodiscard]] std::optional<std::string> read_marker() const {
    const Result<std::string> command = kernel::read_trusted_file(host_.root.get(), marker());
    return command ? std::optional(*command) : std::nullopt;
  }

  Result<SetupReport> carry_out(const EngineChange& change, const std::optional<std::string>& earlier) {
    if (const Result<std::string> unit = control_.run({"systemctl", "cat", engine_.unit}, kAskLimit); !unit) {
      return fail(unit.error().code, "setup " + engine_.name + ": nothing was changed: " + unit.error().message +
                                         " (--unit names the unit of the engine)");
    }
    earlier_ = earlier;
    control_.wait(control_.delay);
    const bool was_active = is_active().has_value();
    const bool was_valid = check().has_value();  // otherwise it may be the program of another engine
    SetupReport changed = TRY(change_file(change));
    if (was_valid && new_ && !changed.files.empty()) {  // an engine refuses to check a file that is not there
      if (const Result<std::string> checked = check(); !checked) {
        return take_back("refuses the new one", checked.error());
      }
    }
    if (!was_active && !earlier) {
      TRY(unmark());
      changed.command.clear();
      changed.notes.push_back(engine_.unit + " does not run: it reads the config when it starts");
      return changed;
    }
    return put_into_effect(std::move(changed));
  }

 private:
  [[nodiscard]] std::string marker() const { return "run/holdfast/restart-" + engine_.name; }

  // Without the marker the restart is still tried, but not repeated.
  void mark(const std::string& command) const {
    if (kernel::make_directories(host_.root.get(), "run/holdfast")) {
      (void)kernel::replace_file(host_.root.get(), marker(), {command});
    }
  }
  [[nodiscard]] Result<void> unmark() const { return kernel::remove_file(host_.root.get(), marker()); }

  [[nodiscard]] Result<std::string> check() const {
    return control_.run(check_command(engine_, file_.path()), kAskLimit);
  }
  [[nodiscard]] Result<std::string> is_active() const {
    return control_.run({"systemctl", "is-active", engine_.unit}, kAskLimit);
  }

  [[nodiscard]] bool is_registered() const {
    const Result<HostFile::Content> now = file_.read();
    const auto found = engine_.find(now ? text_of(*now) : "");
    return found && *found;
  }

  // The memory is taken right before the change: in the seconds in which the engine answers, another program may edit
  // the file.
  Result<SetupReport> change_file(const EngineChange& change) {
    TRY(remember());
    const SetupReport planned = TRY(change(RunMode::dry_run));
    mark(earlier_.value_or(planned.command));  // before the change: what is interrupted is repeated
    Result<SetupReport> changed = change(RunMode::carry_out);
    const Result<HostFile::Content> written = file_.read();
    new_ = written ? *written : std::nullopt;
    is_ours_ = has_diff(changed ? *changed : planned);
    is_written_ = is_ours_ || (changed && !changed->files.empty());
    return changed ? std::move(changed) : take_back(std::move(changed).error());
  }

  // Otherwise another program has edited the file before the change or after it.
  [[nodiscard]] bool has_diff(const SetupReport& report) const {
    return !report.files.empty() &&
           report.files.front().diff == report::render_diff({file_.path(), text_of(old_), text_of(new_)});
  }

  Result<SetupReport> put_into_effect(SetupReport report) {
    if (report.command.empty()) {
      report.verdict = "the config was changed earlier, and the restart failed";
    }
    const bool restarts = report.command == engine_.restart_command || (earlier_ && earlier_->contains(" restart "));
    report.command = restarts ? engine_.restart_command : engine_.command;  // a reload does less
    mark(report.command);
    const bool was_registered = is_registered();
    if (const Result<void> runs = run(report.command); !runs) {
      return recover(std::move(report), runs.error());
    }
    report.steps.push_back("run " + report.command);
    report.command.clear();
    TRY(unmark());
    if (is_registered() != was_registered) {  // another restart would change nothing
      report.verdict = std::string("holdfast is ") + (was_registered ? "no runtime" : "still a runtime");
      report.failed.push_back(engine_.unit + " wrote " + file_.path() +
                              " when it started: change what the file is made from");
    }
    return report;
  }

  // Takes back what this call has changed; then the registration, where an earlier call may have been interrupted.
  Result<SetupReport> recover(SetupReport report, const Error& why) {
    if (report.steps.empty()) {
      report.failed.push_back(why.message);
    } else {
      report = take_back("did not run with the new one", why);
      if (runs_again(report)) {
        TRY(unmark());
        return report;
      }
    }
    if (earlier_ && is_registered() && take_out(report) && runs_again(report)) {
      TRY(unmark());
    }
    return report;
  }

  [[nodiscard]] bool runs_again(SetupReport& report) const {
    mark(engine_.restart_command);
    const Result<void> again = run(engine_.restart_command);
    report.command = again ? "" : engine_.restart_command;
    if (!again) {
      report.failed.push_back("with the config from before, too: " + again.error().message);
    }
    return again.has_value();
  }

  // The backup is from before the registration, whichever call wrote it.
  [[nodiscard]] bool take_out(SetupReport& report) const {
    EngineSetupOptions options = options_;
    options.mode = RunMode::carry_out;
    Result<SetupReport> undone = undo_registration(host_, options);
    if (!undone) {
      report.failed.push_back(undone.error().message);
      return false;
    }
    undone->verdict += ": " + engine_.name + " did not run with it";
    undone->failed = std::move(report.failed);
    report = *std::move(undone);
    return true;
  }

  [[nodiscard]] Result<void> run(const std::string& command) const {
    std::vector<std::string> arguments;
    for (const std::string_view part : split_fields(std::string_view(command))) {
      arguments.emplace_back(part);
    }
    if (const Result<std::string> ran = control_.run(arguments, kRestartLimit); !ran) {
      return fail(ran.error().code, "run " + command + ": " + ran.error().message);
    }
    std::string why;
    for (int checks = 0, calm = 0; checks < kMostChecks; ++checks) {
      control_.wait(seconds(1));
      const Result<std::string> active = is_active();
      calm = active ? calm + 1 : 0;
      why = active ? why : active.error().message;
      if (calm == kCalmChecks) {
        return {};
      }
    }
    return fail(std::errc::timed_out, "run " + command + ": it does not stay active: " + why);
  }

  [[nodiscard]] Result<void> remember() {
    old_ = TRY(file_.read());
    old_backup_ = TRY(backup_.read());
    links_ = read_gpu_links(host_);
    return {};
  }

  // What another program has written meanwhile is not overwritten.
  [[nodiscard]] Result<void> restore() const {
    if (is_written_ && (!is_ours_ || text_of(TRY(file_.read())) != text_of(new_))) {
      return fail(std::errc::resource_unavailable_try_again, "restore " + file_.path() + ": it was changed meanwhile");
    }
    TRY(is_written_ ? put_back(file_, old_) : Result<void>());
    TRY(put_back(backup_, old_backup_));
    return restore_gpu_links(host_, links_);
  }

  static Result<void> put_back(const HostFile& file, const HostFile::Content& content) {
    return content ? file.write_copy(*content) : file.remove(TRY(file.read()));
  }

  static std::string text_of(const HostFile::Content& content) { return content ? content->text : std::string(); }

  // A restart that an earlier call owes is still owed.
  [[nodiscard]] std::unexpected<Error> take_back(Error error) const {
    const Result<void> restored = restore();
    error.message += restored ? "" : "; " + restored.error().message;
    if (restored && !earlier_) {
      (void)unmark();
    }
    return std::unexpected(std::move(error));
  }

  [[nodiscard]] SetupReport take_back(const std::string& what, const Error& why) const {
    SetupReport report;
    report.subject = engine_.name;
    report.is_done = true;
    report.failed.push_back(why.message);
    const Result<void> restored = restore();
    report.verdict =
        file_.path() + (restored ? " is as it was: " : " could not be restored: ") + engine_.name + " " + what;
    if (!restored) {
      report.failed.push_back(restored.error().message);
    } else if (!earlier_) {
      (void)unmark();
    }
    return report;
  }

  const kernel::Host& host_;
  const EngineControl& control_;
  const EngineSetupOptions& options_;
  Engine engine_;
  HostFile file_;
  HostFile backup_;
  HostFile::Content old_;
  HostFile::Content new_;
  bool is_written_ = false;  // by us
  bool is_ours_ = false;     // `new_` is `old_` with our change and no other
  HostFile::Content old_backup_;
  GpuLinks links_;
  std::optional<std::string> earlier_;
};

}  // namespace

Result<SetupReport> change_and_restart(const kernel::Host& host, const EngineSetupOptions& options,
                                       const EngineChange& change, const EngineControl& control) {
  const SetupReport planned = TRY(change(RunMode::dry_run));
  Restart restart(host, TRY(find_engine(options)), options, control);
  const std::optional<std::string> earlier = restart.read_marker();
  return planned.command.empty() && !earlier ? change(RunMode::carry_out) : restart.carry_out(change, earlier);
}

}  // namespace hf::setup
