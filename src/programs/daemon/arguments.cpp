#include "programs/daemon/arguments.h"

#include <filesystem>

#include <CLI/CLI.hpp>

#include "programs/console/usage.h"

namespace hf::programs {

void add_log_option(CLI::App& app, std::string& format) {
  app.add_option("--log", format, "text or json, one line per decision")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

std::optional<int> parse_arguments(CLI::App& app, std::span<char* const> argv,
                                   std::initializer_list<std::string*> paths) {
  try {
    app.parse(int(argv.size()), argv.data());
  } catch (const CLI::ParseError& error) {
    return answer_unparsed(app, error, argv);
  }
  for (std::string* path : paths) {
    *path = path->empty() ? std::string() : std::filesystem::absolute(*path).string();
  }
  return std::nullopt;
}

}  // namespace hf::programs
