#include <algorithm>

#include "adapters/document/text.h"
#include "adapters/document/toml.h"
#include "adapters/document/toml_text.h"

namespace hf::document {
namespace {

constexpr std::size_t kMostKeys = 256;  // of a path: toml++ destroys nested tables by recursion

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

// A string is a value, or a part of a key: toml++ reads quotes elsewhere as characters, and what is between them.
bool can_begin_string(char before_on_line, bool is_key) {
  return std::string_view("\n=[{,").find(before_on_line) != std::string_view::npos || (before_on_line == '.' && is_key);
}

bool is_control(char character) {
  const auto code = static_cast<unsigned char>(character);
  return code > 0x7eU || (code < ' ' && character != '\t' && character != '\n' && character != '\r');
}

// Checks one character after the other, outside strings and comments.
class Checker {
 public:
  explicit Checker(std::string_view text) : text_(text) {}

  [[nodiscard]] bool is_fine(std::size_t at) {
    const char character = text_[at];
    const bool is_missing = character == '=' && !has_value(text_, at + 1);
    const bool is_quote = character == '"' || character == '\'';
    const bool is_allowed = !is_control(character) && !is_missing && can_follow(before_, character) &&
                            (!is_quote || can_begin_string(before_on_line_, is_key_));
    const bool is_blank = std::string_view(" \t\n\r").find(character) != std::string_view::npos;
    before_ = is_blank ? before_ : character;
    is_key_ = character != '=' && (is_key_ || std::string_view("\n{,").find(character) != std::string_view::npos);
    before_on_line_ = is_blank && character != '\n' ? before_on_line_ : character;
    dots_ =
        std::string_view("=,[{\n").find(character) != std::string_view::npos ? 0 : dots_ + (character == '.' ? 1 : 0);
    return is_allowed && dots_ < kMostKeys;
  }

 private:
  std::string_view text_;
  char before_ = '\n';  // the last character that was not whitespace
  char before_on_line_ = '\n';
  bool is_key_ = true;    // or an element of a list
  std::size_t dots_ = 0;  // since the key began
};

// The offset after the comment, the string or the other character at this offset.
std::size_t after(std::string_view text, std::size_t at) {
  const char character = text[at];
  const bool is_string = character == '"' || character == '\'';
  const std::size_t end = is_string ? end_of_toml_string(text, at) : std::string_view::npos;
  if (character == '#' || (is_string && end == std::string_view::npos)) {
    return std::min(text.find('\n', at), text.size());
  }
  return is_string ? end : at + 1;
}

}  // namespace

std::optional<std::size_t> find_invalid_toml(std::string_view text) {
  Checker checker(text);
  std::size_t at = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  for (; at < text.size(); at = after(text, at)) {
    if (text[at] != '#' && !checker.is_fine(at)) {
      return at;
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> find_nameless_header(std::string_view text) {
  for (const TomlStatement& statement : scan_toml(text)) {
    const bool is_array_of_tables = text.substr(statement.start).starts_with("[[");
    const std::size_t name =
        std::min(text.find_first_not_of(" \t", statement.start + (is_array_of_tables ? 2 : 1)), text.size());
    const bool is_named =
        name < text.size() && (is_key_character(text[name]) || text[name] == '"' || text[name] == '\'');
    if (statement.kind == TomlStatement::Kind::table && !is_named) {
      return name;
    }
  }
  return std::nullopt;
}

std::size_t end_of_toml_string(std::string_view text, std::size_t begin) {
  const char delimiter = text[begin];
  const std::string triple(3, delimiter);
  const bool is_long = text.substr(begin).starts_with(triple);
  for (std::size_t at = begin + (is_long ? 3 : 1); at < text.size(); ++at) {
    if (text[at] == '\\' && delimiter == '"') {
      ++at;
    } else if (!is_long && text[at] == '\n') {
      return std::string_view::npos;
    } else if (!is_long && text[at] == delimiter) {
      return at + 1;
    } else if (is_long && text.substr(at).starts_with(triple)) {
      // It may end in up to two quotes of its own before the closing ones.
      const std::size_t quotes = std::min(text.find_first_not_of(delimiter, at), text.size()) - at;
      return at + std::min<std::size_t>(quotes, 5);
    }
  }
  return text.size();
}

}  // namespace hf::document
