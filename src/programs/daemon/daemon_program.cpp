#include "programs/daemon/daemon_program.h"

#include <filesystem>
#include <iostream>

#include <malloc.h>
#include <CLI/CLI.hpp>

#include "kernel/process/host_root.h"
#include "kernel/process/signals.h"
#include "programs/console/exit_code.h"
#include "programs/console/usage.h"

namespace hf::programs {

void add_check_options(CLI::App& app, CommonOptions& options) {
  app.add_flag("--check-config", options.check_config, "read the configuration, say what it means, and end");
  app.add_flag("--check-health", options.check_health, "say whether the one that runs here is alive, and end");
}

int show_health(const std::optional<std::string>& problem) {
  std::cout << problem.value_or("ok") << '\n';
  return problem ? kProblem : kFine;
}

int run_program(const DaemonProgram& program, CommonOptions& options, std::span<char* const> argv) {
  // A few threads that allocate little: an arena for each would cost memory and gain nothing.
  ::mallopt(M_ARENA_MAX, 2);
  kernel::block_signals();
  CLI::App app(program.name + ": " + program.task, program.name);
  app.set_version_flag("-V,--version", program.name + " " + HOLDFAST_VERSION);
  app.add_option("--config", options.config_file, "this file instead of /etc/holdfast/config.yaml and its drop-ins");
  program.add_options(app);
  app.add_option("--log", options.log, "text or json, one line per decision")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.footer(program.footer);
  try {
    app.parse(int(argv.size()), argv.data());
  } catch (const CLI::ParseError& error) {
    return answer_unparsed(app, error, argv);
  }
  std::vector<std::string*> paths = program.paths;
  paths.push_back(&options.config_file);
  for (std::string* path : paths) {
    *path = path->empty() ? std::string() : std::filesystem::absolute(*path).string();
  }
  const Result<int> served = program.serve();
  if (!served) {
    std::cerr << program.name << ": " << served.error().message << '\n';
    return kCannotTell;
  }
  return *served;
}

Result<kernel::Host> enter_host() {
  TRY(kernel::enter_host_root());
  return kernel::open_host();
}

}  // namespace hf::programs
