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
#include "core/report/fleet.h"
#include "core/report/host_report.h"
#include "host/open_host.h"
#include "programs/console/output.h"
#include "render/finding.h"
#include "render/host.h"
#include "services/doctor/doctor.h"

namespace hf::programs {
namespace {

struct ContainerOptions {
  std::vector<std::string> containers;
  std::string container;
  std::string device;
  std::string code;
  bool deep = false;
  bool all = false;
  bool watch = false;
  bool quiet = false;
  bool skip_libraries = false;
  double interval = 2;
  Output output;
};

template <class Report, class Render>
void show(const Output& output, const Report& shown, Render render) {
  print(output.is_text() ? render(shown) : in_format(output, render_json(shown)));
}

// Without root a container's bundle, programs and namespaces cannot be read, and every container would seem fine.
Result<host::OpenHost*> open_as_root(host::HostOpener& opener) {
  if (::geteuid() != 0) {
    return fail(std::errc::operation_not_permitted, "inspect containers");
  }
  return opener.get();
}

Result<report::ContainerList> read_list(const ContainerOptions& options) {
  host::HostOpener opener;
  report::ContainerList list = TRY(doctor::list_containers(*TRY(open_as_root(opener))));
  if (!options.all) {
    std::erase_if(list.lines, [](const report::ContainerLine& line) { return line.container.is_sandbox; });
  }
  return list;
}

int status_of(const report::Judgement& judgement) {
  return judgement.level != report::Level::good ? kProblem : judgement.is_undecided ? kCannotTell : kFine;
}

int show_list(const ContainerOptions& options) {
  while (true) {
    const Result<report::ContainerList> list = read_list(options);
    if (!list) {
      return complain(list.error());
    }
    if (options.watch) {
      clear_screen();
    }
    const report::Width width = options.output.format == "wide" ? report::Width::wide : report::Width::normal;
    show(options.output, *list,
         [width](const report::ContainerList& shown) { return render_text(shown, width, terminal_width()); });
    if (!options.watch) {
      return status_of(report::judge(list->lines));
    }
    if (std::fflush(stdout) != 0) {
      return kCannotTell;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(options.interval));
  }
}

// "HF-101", "hf-101" or "101".
std::string code_of(const std::string& argument) {
  std::string code = argument;
  std::ranges::transform(code, code.begin(), [](unsigned char character) { return char(std::toupper(character)); });
  return code.starts_with("HF-") ? code : "HF-" + code;
}

int explain_code(const std::string& code, const Output& output) {
  const std::string page = report::page_of(code_of(code));
  if (page.empty()) {
    return complain({std::errc::invalid_argument,
                     "finding " + quote(code) + ": no such code; there are " + join(report::codes_with_pages(), " ")});
  }
  print(output.is_text() ? page : in_format(output, report::render_page_json(code_of(code), page)));
  return kFine;
}

// Without --all notes are counted.
void fold_notes(report::DoctorReport& report) {
  const std::size_t notes = std::erase_if(report.findings, report::is_hidden);
  if (notes > 0) {
    report.notes.push_back(std::to_string(notes) + (notes == 1 ? " thing" : " things") +
                           " worth knowing, nothing to do: holdfast doctor --all");
  }
}

int show_diagnosis(const ContainerOptions& options) {
  if (!options.code.empty()) {
    return explain_code(options.code, options.output);
  }
  host::HostOpener opener;
  const Result<host::OpenHost*> open = open_as_root(opener);
  if (!open) {
    return complain(open.error());
  }
  const Progress progress("surveying this host");
  Result<report::DoctorReport> report = doctor::diagnose(**open, {options.containers, options.deep});
  if (!report) {
    return complain(report.error());
  }
  progress.done();
  const int status = status_of(report::judge(report->findings));
  if (options.quiet) {
    print(report::render_worst(*report));
    return status;
  }
  if (!options.all && options.containers.empty() && options.output.is_text()) {
    fold_notes(*report);
  }
  show(options.output, *report, [](const report::DoctorReport& shown) { return render_text(shown); });
  return status;
}

int show_explanation(const ContainerOptions& options) {
  host::HostOpener opener;
  const Result<host::OpenHost*> open = open_as_root(opener);
  if (!open) {
    return complain(open.error());
  }
  const Result<report::Explanation> explanation =
      doctor::explain(**open, options.container, options.device, options.deep);
  if (!explanation) {
    return complain(explanation.error());
  }
  show(options.output, *explanation, [](const report::Explanation& shown) { return render_text(shown); });
  return status_of(report::judge(explanation->findings));
}

int show_devices(const ContainerOptions& options) {
  host::HostOpener opener;
  const Result<host::OpenHost*> open = opener.get();
  if (!open) {
    return complain(open.error());
  }
  const Progress progress("asking the drivers");
  Result<report::DeviceList> list = doctor::list_devices(**open, !options.skip_libraries);
  if (!list) {
    return complain(list.error());
  }
  progress.done();
  if (::geteuid() != 0) {
    list->inventory.notes.emplace_back("containers and holders of devices are shown to root only");
  }
  show(options.output, *list, [](const report::DeviceList& shown) { return render_text(shown, terminal_width()); });
  const bool bad =
      std::ranges::any_of(list->inventory.units, [](const auto& unit) { return unit.health == device::Health::bad; }) ||
      std::ranges::any_of(list->inventory.nodes, [](const auto& node) { return node.is_stale(); }) ||
      std::ranges::any_of(list->inventory.states, [](const auto& state) { return !state.library_error.empty(); });
  return bad ? kProblem : kFine;
}

}  // namespace

void add_ps(CLI::App& app, int& status) {
  const auto options = std::make_shared<ContainerOptions>();
  CLI::App* command =
      app.add_subcommand("ps", "the containers of this host, the devices they are owed, and whether they have them");
  command->add_flag("--watch", options->watch, "repeat the list");
  command->add_option("--interval", options->interval, "seconds between two lists with --watch")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  command->add_flag("--all", options->all, "also the sandboxes of pods");
  add_output(*command, options->output, {"text", "wide", "json", "yaml"});
  command->footer(
      "state: ok; at risk: works now, the next reload or update breaks it; partial: something is missing; stale: "
      "numbers\n"
      "moved; lost: no device of a class can be used; not owed: no trusted evidence gives it a device\n"
      "exit: 0 all ok, 1 some container lacks something or is at risk, 2 usage, or it could not be determined");
  command->callback([options, &status] { status = show_list(*options); });
}

void add_doctor(CLI::App& app, int& status) {
  const auto options = std::make_shared<ContainerOptions>();
  CLI::App* command =
      app.add_subcommand("doctor", "what is wrong with the devices of this host and its containers, and what helps");
  command->add_option("CONTAINER", options->containers,
                      "a name, the beginning of an id, pod/container, or a whole pod; none: all, and the host");
  command->add_flag("--deep", options->deep,
                    "also open the devices and ask NVIDIA's libraries: may wake a sleeping GPU");
  command->add_flag("--all", options->all,
                    "also what is worth knowing but needs nothing done; always so for a CONTAINER");
  CLI::Option* quiet =
      command->add_flag("--quiet", options->quiet, "one line at most: the worst problem; nothing where there is none");
  command->add_option("--explain", options->code, "print the page of a finding, such as HF-101");
  add_output(*command, options->output, {"text", "json", "yaml"});
  quiet->excludes(command->get_option("--output"));
  command->footer(
      "exit: 0 no problem, 1 a problem was found, 2 usage, or it could not be determined\ntry:  holdfast doctor "
      "--explain "
      "HF-101");
  command->callback([options, &status] { status = show_diagnosis(*options); });
}

void add_explain(CLI::App& app, int& status) {
  const auto options = std::make_shared<ContainerOptions>();
  CLI::App* command = app.add_subcommand(
      "explain", "one container, gate by gate: which evidence gives it devices, and what denies them");
  command->add_option("CONTAINER", options->container, "a name, the beginning of an id, or pod/container")->required();
  command->add_option("DEVICE", options->device, "a path, a node's name or a class; none: all it is owed");
  command->add_flag("--deep", options->deep, "also open the devices: may wake a sleeping GPU");
  add_output(*command, options->output, {"text", "json", "yaml"});
  command->footer("exit: 0 no problem, 1 a problem was found, 2 usage, or it could not be determined");
  command->callback([options, &status] { status = show_explanation(*options); });
}

void add_devices(CLI::App& app, int& status) {
  const auto options = std::make_shared<ContainerOptions>();
  CLI::App* command =
      app.add_subcommand("devices", "the devices of this host, their nodes and numbers, and which processes hold them");
  command->add_flag("--no-libraries", options->skip_libraries, "do not ask NVML and CUDA: what /proc and /sys know");
  add_output(*command, options->output, {"text", "json", "yaml"});
  command->footer("exit: 0 all well, 1 a device is sick or a node is stale, 2 usage, or it could not be determined");
  command->callback([options, &status] { status = show_devices(*options); });
}

}  // namespace hf::programs
