#include <algorithm>
#include <cctype>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include "commands.h"
#include "core/base/text.h"
#include "core/report/node_report.h"
#include "machine.h"
#include "output.h"
#include "services/doctor/doctor.h"
#include "services/doctor/mend.h"

namespace hf::programs {
namespace {

using report::Severity;

struct Words {
  std::vector<std::string> containers;
  std::string container;
  std::string device;
  std::string code;
  bool deep = false;
  bool dry_run = false;
  bool all = false;
  bool watch = false;
  bool skip_libraries = false;
  double interval = 2;
  Output output;
};

template <class Report, class Render>
void show(const Output& output, const Report& shown, Render render) {
  if (output.format == "json") {
    print(render_json(shown));
  } else if (output.format == "yaml") {
    print(report::json_to_yaml(render_json(shown)));
  } else {
    print(render(shown));
  }
}

// Without root a container's bundle, programs and namespaces cannot be read, and all would seem well.
Result<std::unique_ptr<OpenMachine>> open_as_root() {
  if (::geteuid() != 0) {
    return fail(std::errc::operation_not_permitted, "look at containers");
  }
  return OpenMachine::open();
}

Result<report::ContainerList> read_list(const Words& words) {
  const std::unique_ptr<OpenMachine> machine = TRY(open_as_root());
  report::ContainerList list = TRY(doctor::list_containers(machine->get()));
  if (!words.all) {
    std::erase_if(list.lines, [](const report::ContainerLine& line) { return line.container.is_sandbox; });
  }
  return list;
}

int show_list(const Words& words) {
  while (true) {
    const Result<report::ContainerList> list = read_list(words);
    if (!list) {
      return complain(list.error());
    }
    if (words.watch) {
      clear_screen();
    }
    const report::Width width = words.output.format == "wide" ? report::Width::wide : report::Width::normal;
    show(words.output, *list, [width](const report::ContainerList& shown) { return render_text(shown, width); });
    if (!words.watch) {
      const bool troubled = std::ranges::any_of(list->lines, [](const report::ContainerLine& line) {
        return line.state != container::State::ok && line.state != container::State::not_owed;
      });
      return troubled ? kProblem : kFine;
    }
    if (std::fflush(stdout) != 0) {
      return kCannotTell;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(words.interval));
  }
}

int status_of(const std::vector<report::Finding>& findings) {
  const bool bad =
      std::ranges::any_of(findings, [](const report::Finding& finding) { return finding.severity != Severity::note; });
  const bool unclear =
      std::ranges::any_of(findings, [](const report::Finding& finding) { return finding.code == "HF-116"; });
  const bool sure = std::ranges::any_of(findings, [](const report::Finding& finding) {
    return finding.severity != Severity::note && finding.code != "HF-116";
  });
  return !bad ? kFine : unclear && !sure ? kCannotTell : kProblem;
}

// "HF-101", "hf-101" or "101".
std::string code_of(const std::string& word) {
  std::string code = word;
  std::ranges::transform(code, code.begin(), [](unsigned char letter) { return char(std::toupper(letter)); });
  return code.starts_with("HF-") ? code : "HF-" + code;
}

int explain_code(const std::string& code) {
  const std::string page = report::page_of(code_of(code));
  if (page.empty()) {
    return complain({std::errc::invalid_argument,
                     "finding " + quote(code) + ": no such code; there are " + join(report::codes_with_pages(), " ")});
  }
  print(page);
  return kFine;
}

int show_diagnosis(const Words& words) {
  if (!words.code.empty()) {
    return explain_code(words.code);
  }
  const Result<std::unique_ptr<OpenMachine>> machine = open_as_root();
  if (!machine) {
    return complain(machine.error());
  }
  const Progress progress("looking at this node");
  Result<report::DoctorReport> report = doctor::diagnose((*machine)->get(), {words.containers, words.deep});
  if (!report) {
    return complain(report.error());
  }
  progress.done();
  const int status = status_of(report->findings);
  if (!words.all && words.output.format == "text") {
    const auto is_note = [](const report::Finding& finding) { return finding.severity == Severity::note; };
    const auto notes = std::ranges::count_if(report->findings, is_note);
    std::erase_if(report->findings, is_note);
    if (notes > 0) {
      report->notes.push_back(std::to_string(notes) + (notes == 1 ? " thing" : " things") +
                              " worth knowing, nothing to do: holdfast doctor --all");
    }
  }
  show(words.output, *report, [](const report::DoctorReport& shown) { return render_text(shown); });
  return status;
}

int show_explanation(const Words& words) {
  const Result<std::unique_ptr<OpenMachine>> machine = open_as_root();
  if (!machine) {
    return complain(machine.error());
  }
  const Result<report::Explanation> explanation =
      doctor::explain((*machine)->get(), words.container, words.device, words.deep);
  if (!explanation) {
    return complain(explanation.error());
  }
  show(words.output, *explanation, [](const report::Explanation& shown) { return render_text(shown); });
  return status_of(explanation->findings);
}

int show_mending(const Words& words) {
  const Result<std::unique_ptr<OpenMachine>> machine = open_as_root();
  if (!machine) {
    return complain(machine.error());
  }
  const doctor::Mending mending = words.dry_run ? doctor::Mending::dry_run : doctor::Mending::carry_out;
  const Result<report::MendReport> report = doctor::mend((*machine)->get(), words.container, words.device, mending);
  if (!report) {
    return complain(report.error());
  }
  show(words.output, *report, [](const report::MendReport& shown) { return render_text(shown); });
  return kFine;
}

int show_devices(const Words& words) {
  const Result<std::unique_ptr<OpenMachine>> machine = OpenMachine::open();
  if (!machine) {
    return complain(machine.error());
  }
  const Progress progress("asking the drivers");
  Result<report::DeviceList> list = doctor::list_devices((*machine)->get(), !words.skip_libraries);
  if (!list) {
    return complain(list.error());
  }
  progress.done();
  if (::geteuid() != 0) {
    list->inventory.notes.emplace_back("containers and holders of devices are shown to root only");
  }
  show(words.output, *list, [](const report::DeviceList& shown) { return render_text(shown); });
  const bool bad =
      std::ranges::any_of(list->inventory.units, [](const auto& unit) { return unit.health == device::Health::bad; }) ||
      std::ranges::any_of(list->inventory.nodes, [](const auto& node) { return node.is_stale(); }) ||
      std::ranges::any_of(list->inventory.states, [](const auto& state) { return !state.library_error.empty(); });
  return bad ? kProblem : kFine;
}

}  // namespace

void add_ps(CLI::App& app, int& status) {
  const auto words = std::make_shared<Words>();
  CLI::App* command =
      app.add_subcommand("ps", "the containers of this node, the devices they are owed, and whether they have them");
  command->add_flag("--watch", words->watch, "show it again and again");
  command->add_option("--interval", words->interval, "seconds between two looks with --watch")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  command->add_flag("--all", words->all, "also the sandboxes of pods");
  add_output(*command, words->output, {"text", "wide", "json", "yaml"});
  command->footer(
      "state: ok; at risk: works now, the next reload or update breaks it; partial: something is missing; stale: "
      "numbers\n"
      "moved; lost: no device of a class can be used; not owed: no trusted evidence gives it a device\n"
      "exit: 0 all ok, 1 some container lacks something or is at risk, 2 usage, or it could not be told");
  command->callback([words, &status] { status = show_list(*words); });
}

void add_doctor(CLI::App& app, int& status) {
  const auto words = std::make_shared<Words>();
  CLI::App* command =
      app.add_subcommand("doctor", "what is wrong with the devices of this node and its containers, and what helps");
  command->add_option("CONTAINER", words->containers,
                      "a name, the beginning of an id, or pod/container; none: all, and the host");
  command->add_flag("--deep", words->deep, "also open the devices and ask NVIDIA's libraries: may wake a sleeping GPU");
  command->add_flag("--all", words->all, "also what is worth knowing but needs nothing done");
  command->add_option("--explain", words->code, "print the page of a finding, such as HF-101");
  add_output(*command, words->output, {"text", "json", "yaml"});
  command->footer(
      "exit: 0 no problem, 1 a problem was found, 2 usage, or it could not be told\ntry:  holdfast doctor --explain "
      "HF-101");
  command->callback([words, &status] { status = show_diagnosis(*words); });
}

void add_explain(CLI::App& app, int& status) {
  const auto words = std::make_shared<Words>();
  CLI::App* command = app.add_subcommand(
      "explain", "one container, gate by gate: who says what it may have, and what stands in the way");
  command->add_option("CONTAINER", words->container, "a name, the beginning of an id, or pod/container")->required();
  command->add_option("DEVICE", words->device, "a path, a node's name or a class; none: all it is owed");
  command->add_flag("--deep", words->deep, "also open the devices: may wake a sleeping GPU");
  add_output(*command, words->output, {"text", "json", "yaml"});
  command->footer("exit: 0 no problem, 1 a problem was found, 2 usage, or it could not be told");
  command->callback([words, &status] { status = show_explanation(*words); });
}

void add_mend(CLI::App& app, int& status) {
  const auto words = std::make_shared<Words>();
  CLI::App* command =
      app.add_subcommand("mend", "make nodes a container is owed anew in its /dev, with the numbers of today");
  command->add_option("CONTAINER", words->container, "a name, the beginning of an id, or pod/container")->required();
  command->add_option("DEVICE", words->device, "a path, a node's name or a class; none: all it is owed");
  command->add_flag("--dry-run", words->dry_run, "say what would be made, change nothing");
  add_output(*command, words->output, {"text", "json", "yaml"});
  command->footer(
      "Only nodes that trusted evidence gives the container, and that are missing, stale, closed or no nodes. Rules "
      "are\n"
      "not touched: that is what grant is for. No link of the container's is followed.\n"
      "exit: 0 done, or nothing to do; 2 usage, or it could not be done");
  command->callback([words, &status] { status = show_mending(*words); });
}

void add_devices(CLI::App& app, int& status) {
  const auto words = std::make_shared<Words>();
  CLI::App* command =
      app.add_subcommand("devices", "the devices of this node, their nodes and numbers, and who has them");
  command->add_flag("--no-libraries", words->skip_libraries, "do not ask NVML and CUDA: what /proc and /sys know");
  add_output(*command, words->output, {"text", "json", "yaml"});
  command->footer("exit: 0 all well, 1 a device is sick or a node is stale, 2 usage, or it could not be told");
  command->callback([words, &status] { status = show_devices(*words); });
}

}  // namespace hf::programs
