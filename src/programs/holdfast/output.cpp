#include "output.h"

#include <algorithm>
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

// Names of cgroups and programs are others' words: they must not speak to the terminal.
void print(const std::string& text) {
  std::string safe = text;
  std::ranges::replace_if(safe, [](unsigned char byte) { return (byte < 0x20 && byte != '\n') || byte == 0x7f; }, '?');
  std::fwrite(safe.data(), 1, safe.size(), stdout);
}

int complain(const Error& error) {
  const bool lacks_rights =
      error.code == std::errc::operation_not_permitted || error.code == std::errc::permission_denied;
  const char* hint = lacks_rights && ::geteuid() != 0 ? " (run it as root)" : "";
  std::string message = error.message;
  std::ranges::replace_if(message, [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; }, '?');
  std::fprintf(stderr, "holdfast: %s%s\n", message.c_str(), hint);
  return kCannotTell;
}

}  // namespace hf::programs
