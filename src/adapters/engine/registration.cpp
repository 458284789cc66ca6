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

}  // namespace hf::engine
