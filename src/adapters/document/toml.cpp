#include "adapters/document/toml.h"

#include <algorithm>
#include <cstdint>
#include <sstream>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "adapters/document/text.h"
#include "core/base/text.h"

namespace hf::document {
namespace {

void flatten(const toml::table& table, TomlPath& path, TomlValues& values) {
  for (const auto& [key, node] : table) {
    path.emplace_back(key.str());
    if (const toml::table* inner = node.as_table()) {
      flatten(*inner, path, values);
    } else {
      std::ostringstream text;
      node.visit([&text](const auto& value) { text << toml::toml_formatter{value, toml::format_flags::none}; });
      values.emplace(path, text.str());
    }
    path.pop_back();
  }
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto byte = [&text](std::uint32_t bits) { text += char(bits); };
  const auto tail = [&byte, code](unsigned shift) { byte(0x80U | (code >> shift & 0x3fU)); };
  if (code < 0x80U) {
    byte(code);
  } else if (code < 0x800U) {
    byte(0xc0U | code >> 6U);
    tail(0);
  } else if (code < 0x10000U) {
    byte(0xe0U | code >> 12U);
    tail(6);
    tail(0);
  } else {
    byte(0xf0U | code >> 18U);
    tail(12);
    tail(6);
    tail(0);
  }
}

// Appends the character of the escape that begins at this offset, and returns the offset after it.
std::size_t unescape(std::string_view text, std::size_t at, std::string& result) {
  constexpr std::string_view kLetters = "btnfr";
  constexpr std::string_view kCharacters = "\b\t\n\f\r";
  const char letter = text[at + 1];
  if (letter == 'u' || letter == 'U') {
    const std::size_t digits = letter == 'u' ? 4 : 8;
    append_utf8(result, parse_number<std::uint32_t>(text.substr(at + 2, digits), 16).value_or(0xfffdU));
    return at + 2 + digits;
  }
  const std::size_t found = kLetters.find(letter);
  result += found == std::string_view::npos ? letter : kCharacters[found];
  return at + 2;
}

std::unexpected<Error> no_toml(const std::string& position) {
  return fail(std::errc::invalid_argument, position + ": this is no TOML");
}

}  // namespace

Result<TomlValues> parse_toml(std::string_view text) {
  for (const std::optional<std::size_t>& offset : {find_nameless_header(text), find_invalid_toml(text)}) {
    if (offset) {
      return no_toml(line_and_column(text, *offset));
    }
  }
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::source_position& position = parsed.error().source().begin;
    return no_toml("line " + std::to_string(position.line) + ", column " + std::to_string(position.column));
  }
  TomlValues values;
  TomlPath path;
  flatten(parsed.table(), path, values);
  return values;
}

std::string explain_no_toml(std::string_view text) {
  if (find_invalid_toml(text)) {
    return "a character that is not valid TOML there";
  }
  // toml++ reports an empty header and what comes before it, but must not see another one without a name.
  const std::size_t nameless = find_nameless_header(text).value_or(text.size());
  const std::size_t end = nameless + (text.substr(nameless).starts_with(']') ? 1 : 0);
  const toml::parse_result parsed = toml::parse(text.substr(0, end));
  return parsed ? std::string() : std::string(parsed.error().description());
}

bool is_below(const TomlPath& path, const TomlPath& table) {
  return path.size() >= table.size() && std::equal(table.begin(), table.end(), path.begin());
}

TomlPath path_below(const TomlPath& table, const std::string& key) {
  TomlPath path = table;
  path.push_back(key);
  return path;
}

std::optional<std::string> string_at(const TomlValues& values, const TomlPath& path) {
  const auto value = values.find(path);
  if (value == values.end() || !value->second.starts_with('"')) {
    return std::nullopt;
  }
  const std::string_view text = std::string_view(value->second).substr(1, value->second.size() - 2);
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\\' && at + 1 < text.size()) {
      at = unescape(text, at, result);
    } else {
      result += text[at++];
    }
  }
  return result;
}

std::optional<bool> bool_at(const TomlValues& values, const TomlPath& path) {
  const auto value = values.find(path);
  const std::string_view text = value == values.end() ? std::string_view() : value->second;
  if (text == "true" || text == "false") {
    return text == "true";
  }
  const bool is_negative = text.starts_with('-');
  const std::optional<std::uint64_t> number = parse_number<std::uint64_t>(text.substr(is_negative ? 1 : 0));
  return number ? std::optional(*number != 0) : std::nullopt;
}

}  // namespace hf::document
