#include <filesystem>
#include <memory>
#include <string>

#include <fcntl.h>
#include <CLI/CLI.hpp>

#include "commands.h"
#include "kernel/command.h"
#include "kernel/file.h"
#include "output.h"
#include "services/setup/engine_setup.h"
#include "services/setup/node_setup.h"

namespace hf::programs {
namespace {

using report::SetupReport;

struct SetupWords {
  std::string config;
  std::string runtime_path;
  bool by_default = false;
  bool dry_run = false;
  bool undo = false;
  bool load_modules = false;
  bool quiet = false;
  Output output;

  [[nodiscard]] setup::Doing doing() const { return dry_run ? setup::Doing::dry_run : setup::Doing::carry_out; }
};

// No cgroup is needed to write a file: a machine that is being built may have none.
Result<kernel::Host> open_root() {
  kernel::Host host;
  host.root = TRY(kernel::open_directory(AT_FDCWD, "/"));
  return host;
}

int show(const Result<SetupReport>& report, const SetupWords& words) {
  if (!report) {
    return complain(report.error());
  }
  const bool is_well = report->failed.empty() && (report->is_done || report->changes_nothing());
  if (!words.quiet || !report->failed.empty()) {
    print(words.output.is_json() ? render_json(*report) : render_text(*report));
  }
  return is_well ? kFine : kProblem;
}

// The runtime that lies beside us, unless another is named.
Result<std::string> find_runtime(const SetupWords& words) {
  const std::filesystem::path beside = std::filesystem::path(kernel::own_path()).parent_path() / "holdfast-runtime";
  std::string path = words.runtime_path.empty() ? beside.string() : words.runtime_path;
  TRY(kernel::check_trusted_program(path));
  return path;
}

Result<SetupReport> set_up_engine(const std::string& engine, const SetupWords& words) {
  const kernel::Host host = TRY(open_root());
  setup::EngineOrder order{engine, "", {}, words.doing()};
  if (!words.config.empty()) {
    order.file = std::filesystem::absolute(words.config).lexically_normal();
  }
  if (words.undo) {
    return setup::undo_registration(host, order);
  }
  order.registration.program = TRY(find_runtime(words));
  order.registration.standing = words.by_default ? engine::Standing::by_default : engine::Standing::offered;
  return setup::register_runtime(host, order);
}

Result<SetupReport> set_up_node(const SetupWords& words) {
  const kernel::Host host = TRY(open_root());
  setup::NodeOrder order;
  order.program = kernel::own_path();
  order.doing = words.doing();
  order.modules = words.load_modules ? setup::Modules::load : setup::Modules::leave;
  if (words.undo) {
    return setup::undo_node(host, order);
  }
  TRY(kernel::check_trusted_program(order.program));  // udev will run it as root
  return setup::set_up_node(host, order);
}

void add_common(CLI::App& command, SetupWords& words) {
  command.add_flag("--dry-run", words.dry_run, "show what would be changed, change nothing");
  command.add_flag("--undo", words.undo, "take back what was set up");
  add_output(command, words.output);
}

void add_engine(CLI::App& setup, const std::string& name, const std::string& where, int& status) {
  const auto words = std::make_shared<SetupWords>();
  CLI::App* command = setup.add_subcommand(name, "tell " + name + " of the runtime holdfast (" + where + ")");
  CLI::Option* by_default =
      command->add_flag("--default", words->by_default, "for containers that ask for no runtime, too");
  CLI::Option* path =
      command->add_option("--runtime-path", words->runtime_path, "of holdfast-runtime, if not beside holdfast");
  command->add_option("--config", words->config, "another file than the usual one");
  add_common(*command, *words);
  command->get_option("--undo")->excludes(by_default)->excludes(path);
  command->callback([name, words, &status] { status = show(set_up_engine(name, *words), *words); });
}

void add_node(CLI::App& setup, int& status) {
  const auto words = std::make_shared<SetupWords>();
  CLI::App* command = setup.add_subcommand("node", "nodes of devices, links in /dev/char, and a udev rule for both");
  command->add_flag("--load-modules", words->load_modules, "load NVIDIA's modules first, where there are any");
  command->add_flag("--quiet", words->quiet, "say nothing unless something failed");
  add_common(*command, *words);
  command->callback([words, &status] { status = show(set_up_node(*words), *words); });
}

}  // namespace

void add_setup(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("setup", "make holdfast a runtime of this machine's engines; prepare the node");
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
      "--undo puts it back; where somebody changed the file since, only holdfast's lines are taken out.\n"
      "exit: 0 it is so now, or was already; 1 with --dry-run something would be changed, or a step failed;\n"
      "2 usage, or the file could not be read or written");
}

}  // namespace hf::programs
