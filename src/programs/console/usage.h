// Usage: one line that says what is wrong with a command line, what was probably meant, and where the help is.
#pragma once

#include <span>
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace hf::programs {

// Prints what was asked for, --help or --version, or else what is wrong with the command line. The program exits with
// the result.
int answer_unparsed(const CLI::App& app, const CLI::ParseError& error, std::span<char* const> argv);

// Parses the command line and so runs its command, which sets `status`. Prints `missing` where there is no command. The
// program exits with the result.
int run_command_line(CLI::App& app, std::span<char* const> argv, const std::string& missing, const int& status);

// Every command with its description, in groups.
std::string list_commands(const CLI::App& app);

}  // namespace hf::programs
