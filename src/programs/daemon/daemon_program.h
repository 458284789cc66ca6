// DaemonProgram: the command line of a daemon, and what every daemon does before it serves.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "kernel/files/host.h"

namespace CLI {
class App;
}

namespace hf::programs {

struct CommonOptions {
  std::string config_file;
  std::string log = "text";
  bool check_config = false;
  bool check_health = false;
};

struct DaemonProgram {
  std::string name;
  std::string task;                            // in one line
  std::string footer;                          // of its help
  std::function<void(CLI::App&)> add_options;  // all but --config and --log
  std::vector<std::string*> paths;             // relative to the directory it was started in; they become absolute here
  std::function<Result<int>()> serve;          // the exit code
};

void add_check_options(CLI::App& app, CommonOptions& options);

// --check-health: whether the daemon that runs here is alive, by its file. No configuration is read: a mistake in it
// must not make a daemon restart that goes on with the one before.
int show_health(const std::optional<std::string>& problem);

// The exit code of the program.
int run_program(const DaemonProgram& program, CommonOptions& options, std::span<char* const> argv);

// The host, also where the daemon runs in a container.
Result<kernel::Host> enter_host();

}  // namespace hf::programs
