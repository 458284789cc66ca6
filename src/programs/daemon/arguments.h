// Arguments: what the command lines of both daemons have in common.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace CLI {
class App;
}

namespace hf::programs {

void add_log_option(CLI::App& app, std::string& format);

// The exit code where the program ends here. Paths, which are relative to the directory it was started in, become
// absolute.
std::optional<int> parse_arguments(CLI::App& app, std::span<char* const> argv,
                                   std::initializer_list<std::string*> paths);

}  // namespace hf::programs
