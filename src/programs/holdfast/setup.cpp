#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include "commands.h"
#include "kernel/process/command.h"
#include "programs/console/output.h"
#include "render/setup.h"
#include "services/setup/engine_restart.h"
#include "services/setup/engine_setup.h"
#include "services/setup/host_setup.h"
#include "services/setup/program_setup.h"

namespace hf::programs {
namespace {

using report::SetupReport;

constexpr std::uint32_t kLongestSpread = 3600;

struct SetupOptions {
  std::string config;
  std::string runtime_path;
  std::string directory;
  bool by_default = false;
  bool pod_annotations = false;
  bool dry_run = false;
  bool undo = false;
  bool restart = false;
  std::string unit;
  std::uint32_t spread = 0;  // seconds
  bool may_fail = false;
  bool load_modules = false;
  bool keep_device_files = false;
  bool quiet = false;
  Output output;

  [[nodiscard]] RunMode mode() const { return run_mode(dry_run); }
};

// Otherwise the first file that cannot be written would be named, or every step as one that failed.
Result<void> check_root(const SetupOptions& options, const std::string& activity) {
  const bool writes = !options.dry_run;
  return writes && ::geteuid() != 0 ? fail(std::errc::operation_not_permitted, activity) : Result<void>();
}

int show(const Result<SetupReport>& report, const SetupOptions& options) {
  if (!report) {
    return complain(report.error());
  }
  const bool is_well = report->failed.empty() && (report->is_done || report->changes_nothing());
  if (!options.quiet || !report->failed.empty()) {
    print(options.output.is_text() ? render_text(*report) : in_format(options.output, render_json(*report)));
  }
  return is_well ? kFine : kProblem;
}

std::string runtime_beside() { return std::filesystem::path(kernel::own_path()).parent_path() / "holdfast-runtime"; }

// The runtime in the directory of this program, unless another is named.
Result<std::string> find_runtime(const SetupOptions& options) {
  std::string path = options.runtime_path.empty() ? runtime_beside() : options.runtime_path;
  if (const Result<void> checked = kernel::check_trusted_program(path); !checked) {
    return fail(checked.error().code, checked.error().message + " (--runtime-path names another one)");
  }
  return path;
}

setup::EngineControl control_of(const SetupOptions& options) {
  setup::EngineControl control;
  control.run = [](const std::vector<std::string>& arguments, std::chrono::milliseconds limit) {
    kernel::Command command;
    command.arguments = arguments;
    const std::string program = kernel::find_program(arguments.front());
    command.arguments.front() = program.empty() ? arguments.front() : program;
    return kernel::run(command, limit);
  };
  control.wait = [](std::chrono::milliseconds time) { std::this_thread::sleep_for(time); };
  control.delay = std::chrono::milliseconds(std::random_device()() % (options.spread * 1000 + 1));
  return control;
}

Result<SetupReport> set_up_engine(const std::string& engine, const SetupOptions& options) {
  if (options.config.empty()) {  // a file that is named may be the user's own
    TRY(check_root(options, "setup " + engine + ": change the engine's config"));
  }
  const kernel::Host host = TRY(kernel::open_host_without_cgroups());
  setup::EngineSetupOptions engine_options{engine, "", {}, options.mode(), options.unit};
  if (!options.config.empty()) {
    engine_options.file = std::filesystem::absolute(options.config).lexically_normal();
  }
  if (!options.undo) {
    engine_options.registration.program = TRY(find_runtime(options));
    engine_options.registration.role =
        options.by_default ? engine::RuntimeRole::by_default : engine::RuntimeRole::offered;
    engine_options.registration.passes_annotations = options.pod_annotations;
  }
  const auto change = [&](RunMode mode) {
    engine_options.mode = mode;
    return options.undo ? setup::undo_registration(host, engine_options)
                        : setup::register_runtime(host, engine_options);
  };
  return options.restart && !options.dry_run
             ? setup::change_and_restart(host, engine_options, change, control_of(options))
             : change(options.mode());
}

Result<SetupReport> set_up_program(const SetupOptions& options) {
  const setup::ProgramSetupOptions program{
      runtime_beside(), std::filesystem::absolute(options.directory).lexically_normal(), options.mode()};
  return options.undo ? setup::remove_program(program) : setup::install_program(program);
}

Result<SetupReport> set_up_host(const SetupOptions& options) {
  TRY(check_root(options, "setup node: change this host's device nodes, links and udev rules"));
  const kernel::Host host = TRY(kernel::open_host_without_cgroups());
  setup::HostSetupOptions host_options;
  host_options.program = kernel::own_path();
  host_options.mode = options.mode();
  host_options.modules = options.load_modules ? setup::Modules::load : setup::Modules::leave;
  host_options.device_files = options.keep_device_files ? setup::DeviceFiles::by_setup : setup::DeviceFiles::by_driver;
  if (options.undo) {
    return setup::undo_host(host, host_options);
  }
  TRY(kernel::check_trusted_program(host_options.program));  // udev will run it as root
  return setup::set_up_host(host, host_options);
}

// It becomes a part of a command line.
bool is_unit(const std::string& text) {
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || std::string_view("@._-:\\").contains(letter);
  });
}

void add_common(CLI::App& command, SetupOptions& options) {
  command.add_flag("--dry-run", options.dry_run, "show what would be changed, change nothing");
  command.add_flag("--undo", options.undo, "undo what was set up");
  add_output(command, options.output);
}

void add_engine(CLI::App& setup, const std::string& name, const std::string& where, int& status) {
  const auto options = std::make_shared<SetupOptions>();
  CLI::App* command = setup.add_subcommand(name, "register the runtime holdfast with " + name + " (" + where + ")");
  CLI::Option* by_default =
      command->add_flag("--default", options->by_default,
                        "for containers that ask for no runtime, too; without it the earlier default is restored");
  CLI::Option* path = command->add_option("--runtime-path", options->runtime_path,
                                          "of holdfast-runtime, if not in the directory of holdfast");
  command->add_option("--config", options->config, "another file than the default");
  add_common(*command, *options);
  CLI::Option* undo = command->get_option("--undo")->excludes(by_default)->excludes(path);
  if (name == "containerd") {
    undo->excludes(command->add_flag("--pod-annotations", options->pod_annotations,
                                     "pass annotations cdi.k8s.io/… of pods to the runtime, for a containerd without "
                                     "CDI"));
  }
  CLI::Option* restart = command->add_flag("--restart", options->restart,
                                           "restart the engine where its config was changed, or an earlier restart "
                                           "failed; the old config is restored if the engine does not run then");
  if (name != "podman") {
    command->add_option("--unit", options->unit, "the engine's unit of systemd, if it is not " + name)
        ->check([](const std::string& unit) { return is_unit(unit) ? "" : "want the name of a unit"; });
  }
  command->add_option("--spread", options->spread, "seconds: wait for a random part of them before a restart")
      ->needs(restart)
      ->check(CLI::Range(0U, kLongestSpread));
  command->add_flag("--may-fail", options->may_fail, "exit with 0 whatever happened, after it was printed");
  command->callback([name, options, &status] {
    const int shown = show(set_up_engine(name, *options), *options);
    status = options->may_fail ? kFine : shown;
  });
}

void add_runtime(CLI::App& setup, int& status) {
  const auto options = std::make_shared<SetupOptions>();
  CLI::App* command =
      setup.add_subcommand("runtime", "copy holdfast-runtime to a directory of the host, from a container");
  command->add_option("--to", options->directory, "the directory")->required();
  add_common(*command, *options);
  command->callback([options, &status] { status = show(set_up_program(*options), *options); });
}

void add_node(CLI::App& setup, int& status) {
  const auto options = std::make_shared<SetupOptions>();
  CLI::App* command = setup.add_subcommand("node", "device nodes, links in /dev/char, and a udev rule for both");
  CLI::Option* load =
      command->add_flag("--load-modules", options->load_modules, "load NVIDIA's modules first, where there are any");
  CLI::Option* keep = command->add_flag("--keep-device-files", options->keep_device_files,
                                        "keep NVIDIA's driver from creating device nodes, also in containers: they "
                                        "need no hook for that then");
  command->add_flag("--quiet", options->quiet, "print nothing unless something failed");
  add_common(*command, *options);
  command->get_option("--undo")->excludes(keep)->excludes(load);
  command->callback([options, &status] { status = show(set_up_host(*options), *options); });
}

}  // namespace

void add_setup(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("setup", "register holdfast with this host's engines; prepare its device nodes");
  command->require_subcommand(0, 1);
  command->callback([command] {
    if (command->get_subcommands().empty()) {
      throw CLI::RequiredError("setup: docker, containerd, crio, podman, node or runtime");
    }
  });
  add_engine(*command, "docker", "/etc/docker/daemon.json", status);
  add_engine(*command, "containerd", "/etc/containerd/config.toml", status);
  add_engine(*command, "crio", "/etc/crio/crio.conf.d/99-holdfast.conf", status);
  add_engine(*command, "podman", "/etc/containers/containers.conf.d/99-holdfast.conf", status);
  add_node(*command, status);
  add_runtime(*command, status);
  command->footer(
      "Every other key, comment and byte of a file stays; the old file is kept beside it as FILE.holdfast-backup.\n"
      "--undo restores it; if the file was edited since, only holdfast's lines are removed.\n"
      "exit: 0 it is so now, or was already; 1 with --dry-run something would be changed, or a step failed;\n"
      "2 usage, or the file could not be read or written");
}

}  // namespace hf::programs
