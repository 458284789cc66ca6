// Commands: each function adds a subcommand to the command line; its exit code is stored in `status`.
#pragma once

#include <string>
#include <vector>

#include "programs/console/exit_code.h"

namespace CLI {
class App;
}

namespace hf::programs {

void add_ps(CLI::App& app, int& status);
void add_doctor(CLI::App& app, int& status);
void add_explain(CLI::App& app, int& status);
void add_mend(CLI::App& app, int& status);
void add_devices(CLI::App& app, int& status);
void add_rules(CLI::App& app, int& status);
void add_heal(CLI::App& app, int& status);
void add_blame(CLI::App& app, int& status);
void add_watch(CLI::App& app, int& status);
void add_cdi(CLI::App& app, int& status);
void add_setup(CLI::App& app, int& status);
void add_cpu(CLI::App& app, int& status);
void add_cpu_manager(CLI::App& cpu, int& status);  // below `holdfast cpu`
void add_demo(CLI::App& app, int& status);
void add_grant_and_revoke(CLI::App& app, int& status);

// For the shells: a line "WORD<TAB>DESCRIPTION" for each way to go on; the last word is the unfinished one.
void print_completions(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace hf::programs
