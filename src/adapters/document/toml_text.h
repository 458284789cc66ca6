// TomlText: adds, changes and removes values and tables of a TOML text. Every other byte stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/document/toml.h"

namespace hf::document {

// A table header, or a key with its value, which may span several lines.
struct TomlStatement {
  enum class Kind : std::uint8_t { table, value };

  Kind kind = Kind::value;
  TomlPath path;
  std::size_t begin = 0;  // of its line
  std::size_t start = 0;  // of its text after the indentation
  std::size_t value = 0;
  std::size_t value_end = 0;
  std::size_t end = 0;  // after its last line
};
// Complete for a text that parse_toml accepts; in any other text it finds only some of the statements.
std::vector<TomlStatement> scan_toml(std::string_view text);
bool is_key_character(char byte);  // of a key without quotes

// A new table is added after its sibling tables, and is indented like them.
std::string with_table(std::string_view text, const TomlPath& table, const TomlValues& values);
std::string with_value(std::string_view text, const TomlPath& path, std::string_view value);
std::string without(std::string_view text, const TomlPath& path);  // a value, or a table with everything in it
// Without the table's header, if the table has no value of its own.
std::string without_empty_table(std::string_view text, const TomlPath& table);
bool has_header(std::string_view text, const TomlPath& table);
std::optional<std::string> value_in(std::string_view text, const TomlPath& path);  // as it is written

}  // namespace hf::document
