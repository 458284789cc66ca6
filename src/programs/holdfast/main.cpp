// holdfast: the command line tool for all queries and repairs.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "kernel/files/fd.h"
#include "kernel/process/host_root.h"
#include "programs/console/output.h"
#include "programs/console/usage.h"

namespace {

void enter_host_root() {
  if (const hf::Result<void> entered = hf::kernel::enter_host_root(); !entered) {
    throw std::runtime_error(entered.error().message);
  }
}

struct Group {
  const char* title;
  std::vector<void (*)(CLI::App&, int&)> commands;
};

void add_commands(CLI::App& app, int& status) {
  namespace programs = hf::programs;
  const std::vector<Group> groups = {
      {"Inspect",
       {programs::add_ps, programs::add_doctor, programs::add_explain, programs::add_devices, programs::add_rules}},
      {"Repair", {programs::add_heal, programs::add_grant_and_revoke, programs::add_mend}},
      {"Find out who did it", {programs::add_blame, programs::add_watch}},
      {"Prepare a host", {programs::add_setup, programs::add_cdi}},
      {"CPUs", {programs::add_cpu}},
      {"Try it", {programs::add_demo}},
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

}  // namespace

int main(int argc, char** argv) {
  hf::programs::fill_standard_files();
  hf::kernel::raise_descriptor_limit();  // each BPF program of the host is held open, and there may be thousands
  CLI::App app{"holdfast gives a container its devices and its own CPU cores, and keeps them there.", "holdfast"};
  app.set_version_flag("-V,--version", std::string("holdfast ") + HOLDFAST_VERSION);
  app.get_formatter()->column_width(28);
  app.require_subcommand(0, 1);
  int status = hf::programs::kFine;
  add_commands(app, status);
  app.parse_complete_callback(enter_host_root);  // before a command runs, and not for --help
  if (argc > 1 && std::string_view(argv[1]) == "complete") {
    hf::programs::print_completions(app, {argv + 2, argv + argc});  // an unfinished command line is not for the parser
    return hf::programs::kFine;
  }
  std::string help = "--help";
  std::string version = "--version";
  if (argc > 1 && std::string_view(argv[1]) == "help") {  // holdfast help doctor
    argv[1] = help.data();
    std::rotate(argv + 1, argv + 2, argv + argc);
  } else if (argc == 2 && std::string_view(argv[1]) == "version") {
    argv[1] = version.data();
  }
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) {
      std::cerr << "holdfast: a command is missing\n\n"
                << hf::programs::list_commands(app)
                << "\nholdfast COMMAND --help describes one. A first look: holdfast doctor\n";
      return hf::programs::kCannotTell;
    }
  } catch (const CLI::ParseError& error) {
    return hf::programs::answer_unparsed(app, error, {argv, std::size_t(argc)});
  } catch (const std::exception& error) {
    std::cerr << "holdfast: " << error.what() << "\n";
    return hf::programs::kCannotTell;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::cerr << "holdfast: cannot write to standard output\n";
    return hf::programs::kCannotTell;
  }
  return status;
}
