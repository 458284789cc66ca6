#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include "commands.h"
#include "core/report/demo_report.h"
#include "host/open_host.h"
#include "programs/console/output.h"
#include "render/demo.h"
#include "services/demo/attack.h"
#include "services/demo/demo.h"
#include "services/demo/tally.h"
#include "services/doctor/doctor.h"

namespace hf::programs {
namespace {

constexpr const char* kNextSteps =
    "In production the package runs holdfastd as a service (holdfastd.service). Check with `holdfast doctor`, and see\n"
    "with `holdfast blame CONTAINER` which process changed rules. `man holdfast` has the rest.\n";

struct DemoOptions {
  bool once = false;
  unsigned seconds = 40;
  bool offline = false;
  Output output;
  std::string tally;
  std::string node;
  std::vector<std::string> attack;
};

// Prints progress lines for people; an unfinished last line is overwritten. Prints nothing if JSON is requested.
class Display {
 public:
  explicit Display(bool is_silent) : is_silent_(is_silent), can_overwrite_(can_overwrite(STDOUT_FILENO)) {}

  void say(const std::string& line) {
    draw("");
    if (!is_silent_) {
      print(line + "\n");
      std::fflush(stdout);
    }
  }

  void draw(const std::string& line) {
    if (is_silent_ || !can_overwrite_) {
      return;
    }
    if (is_drawn_) {
      std::fputs("\r\033[K", stdout);
    }
    is_drawn_ = !line.empty();
    if (is_drawn_) {
      std::fputs("\033[?7l", stdout);  // without line wrap, because a wrapped line cannot be overwritten
      print(line);
      std::fputs("\033[?7h", stdout);
    }
    std::fflush(stdout);
  }

 private:
  bool is_silent_;
  bool can_overwrite_;
  bool is_drawn_ = false;
};

Result<report::DoctorReport> diagnose(const std::string& container) {
  host::HostOpener opener;
  return doctor::diagnose(*TRY(opener.get()), {{container}, false});
}

Result<report::DemoReport> run_demo(const DemoOptions& options) {
  if (::geteuid() != 0) {
    return fail(std::errc::operation_not_permitted, "demo creates containers and changes their device rules");
  }
  host::HostOpener opener;
  const host::OpenHost& open = *TRY(opener.get());
  Display display(!options.output.is_text());
  demo::Settings settings;
  settings.length = options.once ? demo::Length::once : demo::Length::seconds;
  settings.guarded = std::chrono::seconds(options.seconds);
  settings.may_download = !options.offline;
  settings.diagnose = diagnose;
  settings.say = [&display](const std::string& line) { display.say(line); };
  settings.draw = [&display](const std::string& line) { display.draw(line); };
  return demo::run_demo(open, settings);
}

int show_demo(const DemoOptions& options) {
  const Result<report::DemoReport> report = run_demo(options);
  if (!report) {
    return complain(report.error());
  }
  print(options.output.is_text() ? "\n" + render_text(*report) + "\n" + kNextSteps
                                 : in_format(options.output, render_json(*report)));
  return report->has_held() && !report->is_interrupted ? kFine : kProblem;
}

// Subcommands that the demo starts as separate processes.
void add_roles(CLI::App& app, const std::shared_ptr<DemoOptions>& options, int& status) {
  CLI::App* inside = app.add_subcommand("demo-inside", "the program in the container of the demonstration")->group("");
  inside->add_option("TALLY", options->tally)->required();
  inside->add_option("NODE", options->node)->required();
  inside->callback([options, &status] { status = demo::open_again_and_again(options->tally, options->node); });
  CLI::App* attack = app.add_subcommand("demo-attack", "the process that removes its GPU")->group("");
  attack->add_option("ARGUMENTS", options->attack)->required();
  attack->callback([options, &status] {
    const Result<void> done = demo::carry_out_attack(options->attack);
    status = done ? kFine : complain(done.error());
  });
}

}  // namespace

void add_demo(CLI::App& app, int& status) {
  const auto options = std::make_shared<DemoOptions>();
  CLI::App* command =
      app.add_subcommand("demo", "see it happen here: a container loses its GPU, the guard gives it back");
  command->add_flag("--once", options->once, "one attack of each kind, then the end");
  command->add_option("--seconds", options->seconds, "how long the guarded container is attacked")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  command->add_flag("--offline", options->offline,
                    "do not look for an affected runc in this machine's package sources");
  add_output(*command, options->output);
  command->footer(
      "Creates containers of its own and touches no other; all of it is removed in the end, also after Ctrl-C.\n"
      "exit: 0 the guard repaired everything, 1 something stayed lost, or it was interrupted, 2 usage, or it cannot "
      "run "
      "here");
  command->callback([options, &status] { status = show_demo(*options); });
  add_roles(app, options, status);
}

}  // namespace hf::programs
