#include "core/base/toml.h"

#include <string>

namespace hf {
namespace {

// Behind the string that begins here. One on a single line ends with the line at the latest.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string triple(3, quote);
  const bool is_long = text.substr(at).starts_with(triple);
  const std::size_t begin = at + (is_long ? 3 : 1);
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (is_long && text.substr(i).starts_with(triple)) {
      return i + 3;
    } else if (!is_long && (text[i] == quote || text[i] == '\n')) {
      return i + 1;
    }
  }
  return text.size();
}

bool has_value(std::string_view text, std::size_t at) {
  const std::size_t value = text.find_first_not_of(" \t", at);
  constexpr std::string_view kEnds = ",]}#\n\r\v\f";
  return value != std::string_view::npos && kEnds.find(text[value]) == std::string_view::npos;
}

}  // namespace

std::optional<std::size_t> find_trap(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  std::size_t at = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  while (at < text.size()) {
    const char letter = text[at];
    if (static_cast<unsigned char>(letter) > 0x7fU) {
      return at;
    }
    if (letter == '#') {
      const std::size_t end = text.find('\n', at);
      at = end == std::string_view::npos ? text.size() : end;
    } else if (letter == '"' || letter == '\'') {
      at = end_of_string(text, at);
    } else if (letter == '=' && !has_value(text, at + 1)) {
      return at;
    } else {
      ++at;
    }
  }
  return std::nullopt;
}

}  // namespace hf
