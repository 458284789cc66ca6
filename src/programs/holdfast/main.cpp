// holdfast: the command line tool for all queries and repairs.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "kernel/files/fd.h"
#include "kernel/process/host_root.h"
#include "programs/console/output.h"
#include "programs/console/usage.h"

namespace hf::programs {
namespace {

void enter_host_root() {
  if (const Result<void> entered = kernel::enter_host_root(); !entered) {
    throw std::runtime_error(entered.error().message);
  }
}

struct Group {
  const char* title;
  std::vector<void (*)(CLI::App&, int&)> commands;
};

void add_commands(CLI::App& app, int& status) {
  const std::vector<Group> groups = {
      {"Inspect", {add_ps, add_doctor, add_explain, add_devices, add_rules}},
      {"Repair", {add_heal, add_grant_and_revoke, add_mend}},
      {"Find out who did it", {add_blame, add_watch}},
      {"Prepare a host", {add_setup, add_cdi}},
      {"CPUs", {add_cpu}},
      {"Try it", {add_demo}},
  };
  for (const Group& group : groups) {
    for (const auto add : group.commands) {
      const std::size_t before = app.get_subcommands({}).size();
      add(app, status);
      const std::vector<CLI::App*> all = app.get_subcommands({});
      for (std::size_t i = before; i < all.size(); ++i) {
        if (!all[i]->get_group().empty()) {
          all[i]->group(group.title);
        }
      }
    }
  }
}

int run(int argc, char** argv) {
  fill_standard_files();
  kernel::raise_descriptor_limit();  // each BPF program of the host is held open, and there may be thousands
  CLI::App app{"holdfast gives a container its devices and its own CPU cores, and keeps them there.", "holdfast"};
  app.set_version_flag("-V,--version", std::string("holdfast ") + HOLDFAST_VERSION);
  app.get_formatter()->column_width(28);
  app.require_subcommand(0, 1);
  int status = kFine;
  add_commands(app, status);
  app.parse_complete_callback(enter_host_root);  // before a command runs, and not for --help
  if (argc > 1 && std::string_view(argv[1]) == "complete") {
    print_completions(app, {argv + 2, argv + argc});  // an unfinished command line is not for the parser
    return kFine;
  }
  std::string help = "--help";
  std::string version = "--version";
  if (argc > 1 && std::string_view(argv[1]) == "help") {  // holdfast help doctor
    argv[1] = help.data();
    std::rotate(argv + 1, argv + 2, argv + argc);
  } else if (argc == 2 && std::string_view(argv[1]) == "version") {
    argv[1] = version.data();
  }
  const std::string missing = "a command is missing\n\n" + list_commands(app) +
                              "\nholdfast COMMAND --help describes one. A first look: holdfast doctor";
  return run_command_line(app, {argv, std::size_t(argc)}, missing, status);
}

}  // namespace
}  // namespace hf::programs

int main(int argc, char** argv) { return hf::programs::run(argc, argv); }
