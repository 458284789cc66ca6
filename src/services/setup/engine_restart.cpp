#include "services/setup/engine_restart.h"

#include <optional>

#include "core/base/text.h"
#include "kernel/files/file.h"
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
    control_.wait(control_.delay);
    old_ = TRY(file_.read());
    old_backup_ = TRY(backup_.read());
    const bool was_valid = check().has_value();  // otherwise it may be the program of another engine
    SetupReport report = TRY(change(RunMode::carry_out));
    if (const Result<std::string> checked = was_valid && !report.files.empty() ? check() : ""; !checked) {
      TRY(restore());
      return restored("refuses the new one", checked.error());
    }
    if (report.command.empty()) {
      report.verdict = "the config was changed earlier, and the restart failed";
    }
    const bool restarts = report.command == engine_.restart_command || (earlier && earlier->contains(" restart "));
    report.command = restarts ? engine_.restart_command : engine_.command;  // a reload does less
    mark(report.command);
    const Result<void> runs = run(report.command);
    if (runs) {
      report.steps.push_back("run " + report.command);
      report.command.clear();
      TRY(unmark());
      return report;
    }
    if (report.files.empty()) {
      report.failed.push_back(runs.error().message);
      return report;
    }
    TRY(restore());
    report = restored("did not run with the new one", runs.error());
    if (const Result<void> again = run(engine_.restart_command); !again) {
      report.failed.push_back("with the config from before, too: " + again.error().message);
      report.command = engine_.restart_command;
      return report;
    }
    TRY(unmark());
    return report;
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
      const Result<std::string> active = control_.run({"systemctl", "is-active", engine_.unit}, kAskLimit);
      calm = active ? calm + 1 : 0;
      why = active ? why : active.error().message;
      if (calm == kCalmChecks) {
        return {};
      }
    }
    return fail(std::errc::timed_out, "run " + command + ": it does not stay active: " + why);
  }

  [[nodiscard]] Result<void> restore() const {
    for (const auto& [file, content] : {std::pair(&file_, &old_), std::pair(&backup_, &old_backup_)}) {
      TRY(*content ? file->write_copy(**content) : file->remove(TRY(file->read())));
    }
    return {};
  }

  [[nodiscard]] SetupReport restored(const std::string& what, const Error& why) const {
    SetupReport report;
    report.subject = engine_.name;
    report.is_done = true;
    report.verdict = file_.path() + " is as it was: " + engine_.name + " " + what;
    report.failed.push_back(why.message);
    return report;
  }

  const kernel::Host& host_;
  const EngineControl& control_;
  Engine engine_;
  HostFile file_;
  HostFile backup_;
  HostFile::Content old_;
  HostFile::Content old_backup_;
};

}  // namespace

Result<SetupReport> change_and_restart(const kernel::Host& host, const EngineSetupOptions& options,
                                       const EngineChange& change, const EngineControl& control) {
  const SetupReport planned = TRY(change(RunMode::dry_run));
  Restart restart(host, TRY(find_engine(options.engine, options.unit)), options, control);
  const std::optional<std::string> earlier = restart.read_marker();
  return planned.command.empty() && !earlier ? change(RunMode::carry_out) : restart.carry_out(change, earlier);
}

}  // namespace hf::setup
