#include "adapters/engine/registration.h"

#include <algorithm>

#include "core/base/text.h"

namespace hf::engine {

Result<void> check_program_path(std::string_view path) {
  const bool is_plain = std::ranges::all_of(
      path, [](char byte) { return byte > ' ' && byte < '\x7f' && byte != '"' && byte != '\'' && byte != '\\'; });
  if (!path.starts_with('/') || !is_plain) {
    return fail(std::errc::invalid_argument,
                "program " + quote(path) + ": want an absolute path without blanks, quotes and backslashes");
  }
  return {};
}

std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const std::size_t line = std::size_t(std::ranges::count(before, '\n')) + 1;
  const std::size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(before.size() - start + 1);
}

}  // namespace hf::engine
