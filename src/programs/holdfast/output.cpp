#include "output.h"

#include <cerrno>
#include <cstdio>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include "commands.h"

namespace hf::programs {

void add_output(CLI::App& command, Output& output) {
  command.add_option("-o,--output", output.format, "text, or json (schema: docs/JSON.md)")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int complain(const Error& error) {
  const bool lacks_rights =
      error.code == std::errc::operation_not_permitted || error.code == std::errc::permission_denied;
  const char* hint = lacks_rights && ::geteuid() != 0 ? " (run it as root)" : "";
  std::fprintf(stderr, "holdfast: %s%s\n", error.message.c_str(), hint);
  return kCannotTell;
}

}  // namespace hf::programs
