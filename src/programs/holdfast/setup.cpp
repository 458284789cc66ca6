#include <filesystem>
#include <memory>
#include <string>

#include <fcntl.h>
#include <CLI/CLI.hpp>

#include "commands.h"
#include "kernel/files/file.h"
#include "kernel/process/command.h"
#include "output.h"
#include "render/setup.h"
#include "services/setup/engine_setup.h"
#include "services/setup/host_setup.h"

namespace hf::programs {
namespace {

using report::SetupReport;

struct SetupOptions {
  std::string config;
  std::string runtime_path;
  bool by_default = false;
  bool dry_run = false;
  bool undo = false;
  bool load_modules = false;
  bool quiet = false;
  Output output;

  [[nodiscard]] RunMode mode() const { return run_mode(dry_run); }
};

// Does not need cgroups, because a machine image that is being built may have none.
Result<kernel::Host> open_root() {
  kernel::Host host;
  host.root = TRY(kernel::open_directory(AT_FDCWD, "/"));
  return host;
}

int show(const Result<SetupReport>& report, const SetupOptions& options) {
  if (!report) {
    return complain(report.error());
  }
  const bool is_well = report->failed.empty() && (report->is_done || report->changes_nothing());
  if (!options.quiet || !report->failed.empty()) {
    print(options.output.is_json() ? render_json(*report) : render_text(*report));
  }
  return is_well ? kFine : kProblem;
}

// The runtime in the directory of this program, unless another is named.
Result<std::string> find_runtime(const SetupOptions& options) {
  const std::filesystem::path beside = std::filesystem::path(kernel::own_path()).parent_path() / "holdfast-runtime";
  std::string path = options.runtime_path.empty() ? beside.string() : options.runtime_path;
  TRY(kernel::check_trusted_program(path));
  return path;
}

Result<SetupReport> set_up_engine(const std::string& engine, const SetupOptions& options) {
  const kernel::Host host = TRY(open_root());
  setup::EngineSetupOptions engine_options{engine, "", {}, options.mode()};
  if (!options.config.empty()) {
    engine_options.file = std::filesystem::absolute(options.config).lexically_normal();
  }
  if (options.undo) {
    return setup::undo_registration(host, engine_options);
  }
  engine_options.registration.program = TRY(find_runtime(options));
  engine_options.registration.standing = options.by_default ? engine::Standing::by_default : engine::Standing::offered;
  return setup::register_runtime(host, engine_options);
}

Result<SetupReport> set_up_host(const SetupOptions& options) {
  const kernel::Host host = TRY(open_root());
  setup::HostSetupOptions host_options;
  host_options.program = kernel::own_path();
  host_options.mode = options.mode();
  host_options.modules = options.load_modules ? setup::Modules::load : setup::Modules::leave;
  if (options.undo) {
    return setup::undo_host(host, host_options);
  }
  TRY(kernel::check_trusted_program(host_options.program));  // udev will run it as root
  return setup::set_up_host(host, host_options);
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
      command->add_flag("--default", options->by_default, "for containers that ask for no runtime, too");
  CLI::Option* path = command->add_option("--runtime-path", options->runtime_path,
                                          "of holdfast-runtime, if not in the directory of holdfast");
  command->add_option("--config", options->config, "another file than the default");
  add_common(*command, *options);
  command->get_option("--undo")->excludes(by_default)->excludes(path);
  command->callback([name, options, &status] { status = show(set_up_engine(name, *options), *options); });
}

void add_node(CLI::App& setup, int& status) {
  const auto options = std::make_shared<SetupOptions>();
  CLI::App* command = setup.add_subcommand("node", "device nodes, links in /dev/char, and a udev rule for both");
  command->add_flag("--load-modules", options->load_modules, "load NVIDIA's modules first, where there are any");
  command->add_flag("--quiet", options->quiet, "print nothing unless something failed");
  add_common(*command, *options);
  command->callback([options, &status] { status = show(set_up_host(*options), *options); });
}

}  // namespace

void add_setup(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("setup", "register holdfast with this host's engines; prepare its device nodes");
  command->require_subcommand(0, 1);
  command->callback([command] {
    if (command->get_subcommands().empty()) {
      throw CLI::RequiredError("setup: docker, containerd, crio, podman or node");
    }
  });
  add_engine(*command, "docker", "/etc/docker/daemon.json", status);
  add_engine(*command, "containerd", "/etc/containerd/config.toml", status);
  add_engine(*command, "crio", "/etc/crio/crio.conf.d/99-holdfast.conf", status);
  add_engine(*command, "podman", "/etc/containers/containers.conf.d/99-holdfast.conf", status);
  add_node(*command, status);
  command->footer(
      "Every other key, comment and byte of a file stays; the old file is kept beside it as FILE.holdfast-backup.\n"
      "--undo restores it; if the file was edited since, only holdfast's lines are removed.\n"
      "exit: 0 it is so now, or was already; 1 with --dry-run something would be changed, or a step failed;\n"
      "2 usage, or the file could not be read or written");
}

}  // namespace hf::programs
