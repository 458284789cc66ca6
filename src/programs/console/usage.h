// Usage: one line that says what is wrong with a command line, what was probably meant, and where the help is.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace hf::programs {

// `arguments`: those after the program's name.
std::string explain_usage(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& arguments);

// Every command with its description, in groups.
std::string list_commands(const CLI::App& app);

}  // namespace hf::programs
