// Commands: each function adds a subcommand to the command line; its exit code is stored in `status`.
#pragma once

namespace CLI {
class App;
}

namespace hf::programs {

// 0: fine. 1: a problem was found. 2: usage, or it could not be determined.
inline constexpr int kFine = 0;
inline constexpr int kProblem = 1;
inline constexpr int kCannotTell = 2;

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

}  // namespace hf::programs
