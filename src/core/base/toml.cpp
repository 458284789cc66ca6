#include "core/base/toml.h"

#include <string>

namespace hf {
namespace {

// The position after the string that begins here. A string on a single line ends with the line at the latest.
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

// Whether one character may follow another in TOML, whatever whitespace, newlines and comments are between them.
bool can_follow(char before, char character) {
  switch (character) {
    case ',': return std::string_view("[{,=").find(before) == std::string_view::npos;
    case '}': return std::string_view("[,=").find(before) == std::string_view::npos;
    case ']': return before != '=';
    default: return true;
  }
}

// A value begins on the line of its key.
bool has_value(std::string_view text, std::size_t at) {
  const std::size_t value = text.find_first_not_of(" \t", at);
  return value != std::string_view::npos && std::string_view("#\n\r").find(text[value]) == std::string_view::npos;
}

bool is_control(char character) {
  const auto code = static_cast<unsigned char>(character);
  return code > 0x7eU || (code < ' ' && character != '\t' && character != '\n' && character != '\r');
}

}  // namespace

std::optional<std::size_t> find_invalid_toml(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  std::size_t at = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  char before = '\n';  // the last character that was not whitespace
  while (at < text.size()) {
    const char character = text[at];
    if (character == '#') {
      const std::size_t end = text.find('\n', at);
      at = end == std::string_view::npos ? text.size() : end;
      continue;
    }
    const bool is_missing = character == '=' && !has_value(text, at + 1);
    if (is_control(character) || is_missing || !can_follow(before, character)) {
      return at;
    }
    const bool is_blank = character == ' ' || character == '\t' || character == '\n' || character == '\r';
    before = is_blank ? before : character;
    at = character == '"' || character == '\'' ? end_of_string(text, at) : at + 1;
  }
  return std::nullopt;
}

}  // namespace hf
