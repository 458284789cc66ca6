#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include "commands.h"
#include "core/report/demo_report.h"
#include "machine.h"
#include "output.h"
#include "services/demo/attack.h"
#include "services/demo/demo.h"
#include "services/demo/tally.h"
#include "services/doctor/doctor.h"

namespace hf::programs {
namespace {

constexpr const char* kOnARealNode =
    "On a real node: run holdfastd as a service (packaging/holdfastd.service), look with `holdfast doctor`, and ask\n"
    "`holdfast blame CONTAINER` who did it. README.md has the rest.\n";

struct DemoWords {
  bool once = false;
  unsigned seconds = 40;
  bool offline = false;
  Output output;
  std::string tally;
  std::string node;
  std::vector<std::string> attack;
};

// Lines for people, the last of them written over as long as it is not finished. Nothing of it where JSON is asked for.
class Stage {
 public:
  explicit Stage(bool is_silent) : is_silent_(is_silent), is_terminal_(::isatty(STDOUT_FILENO) == 1) {}

  void say(const std::string& line) {
    draw("");
    if (!is_silent_) {
      print(line + "\n");
      std::fflush(stdout);
    }
  }

  void draw(const std::string& line) {
    if (is_silent_ || !is_terminal_) {
      return;
    }
    if (is_drawn_) {
      std::fputs("\r\033[K", stdout);
    }
    is_drawn_ = !line.empty();
    if (is_drawn_) {
      std::fputs("\033[?7l", stdout);  // a line that went on below could not be written over
      print(line);
      std::fputs("\033[?7h", stdout);
    }
    std::fflush(stdout);
  }

 private:
  bool is_silent_;
  bool is_terminal_;
  bool is_drawn_ = false;
};

Result<report::DoctorReport> diagnose(const std::string& container) {
  const std::unique_ptr<OpenMachine> machine = TRY(OpenMachine::open());
  return doctor::diagnose(machine->get(), {{container}, false});
}

Result<report::DemoReport> tell(const DemoWords& words) {
  if (::geteuid() != 0) {
    return fail(std::errc::operation_not_permitted, "demo makes containers and changes their device rules");
  }
  const std::unique_ptr<OpenMachine> machine = TRY(OpenMachine::open());
  Stage stage(words.output.is_json());
  demo::Settings settings;
  settings.length = words.once ? demo::Length::once : demo::Length::seconds;
  settings.guarded = std::chrono::seconds(words.seconds);
  settings.may_download = !words.offline;
  settings.diagnose = diagnose;
  settings.say = [&stage](const std::string& line) { stage.say(line); };
  settings.draw = [&stage](const std::string& line) { stage.draw(line); };
  return demo::run_demo(machine->get().host, machine->get().filters, settings);
}

int show_demo(const DemoWords& words) {
  const Result<report::DemoReport> report = tell(words);
  if (!report) {
    return complain(report.error());
  }
  print(words.output.is_json() ? render_json(*report) : "\n" + render_text(*report) + "\n" + kOnARealNode);
  return report->has_held() && !report->is_interrupted ? kFine : kProblem;
}

// What the story starts as processes of their own.
void add_roles(CLI::App& app, const std::shared_ptr<DemoWords>& words, int& status) {
  CLI::App* inside = app.add_subcommand("demo-inside", "the program in the container of the demonstration")->group("");
  inside->add_option("TALLY", words->tally)->required();
  inside->add_option("NODE", words->node)->required();
  inside->callback([words, &status] { status = demo::open_again_and_again(words->tally, words->node); });
  CLI::App* attack = app.add_subcommand("demo-attack", "what takes its GPU away")->group("");
  attack->add_option("WORDS", words->attack)->required();
  attack->callback([words, &status] {
    const Result<void> done = demo::carry_out_attack(words->attack);
    status = done ? kFine : complain(done.error());
  });
}

}  // namespace

void add_demo(CLI::App& app, int& status) {
  const auto words = std::make_shared<DemoWords>();
  CLI::App* command =
      app.add_subcommand("demo", "see it happen here: a container loses its GPU, the guard gives it back");
  command->add_flag("--once", words->once, "one attack of each kind, then the end");
  command->add_option("--seconds", words->seconds, "how long the guarded container is attacked")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  command->add_flag("--offline", words->offline, "do not look for an affected runc in this machine's package sources");
  add_output(*command, words->output);
  command->footer(
      "Makes containers of its own and touches no other; all of it is removed in the end, also after Ctrl-C.\n"
      "exit: 0 the guard repaired everything, 1 something stayed lost, or it was interrupted, 2 usage, or it cannot "
      "run "
      "here");
  command->callback([words, &status] { status = show_demo(*words); });
  add_roles(app, words, status);
}

}  // namespace hf::programs
