// TomlText: what a TOML text says, and where it says it, so that one thing can be changed and every other byte stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::engine {

using TomlPath = std::vector<std::string>;
using TomlValues = std::map<TomlPath, std::string>;  // each value by its path, written as TOML

bool is_below(const TomlPath& path, const TomlPath& table);  // or the same
TomlPath path_below(const TomlPath& table, const std::string& key);
std::optional<std::string> read_toml_string(const TomlValues& values, const TomlPath& path);
std::string toml_string(std::string_view text);  // in quotes; for texts that need no escapes

// Tables without a value are passed over. An error says where the text is no TOML.
Result<TomlValues> read_toml(std::string_view text);

// One line of a text, or several where a value takes them: a table's head, or a key with its value.
struct TomlStatement {
  enum class Kind : std::uint8_t { table, value };

  Kind kind = Kind::value;
  TomlPath path;
  std::size_t begin = 0;  // of its line
  std::size_t word = 0;   // of its first letter
  std::size_t value = 0;
  std::size_t value_end = 0;
  std::size_t end = 0;  // behind its line
};
// Of a text that read_toml takes; of others it finds what it can.
std::vector<TomlStatement> scan_toml(std::string_view text);
// The first head of a table that does not begin with a name.
std::optional<std::size_t> find_nameless_head(std::string_view text);
bool is_key_letter(char byte);  // of a key without quotes

// Tables that are added stand behind those that lie in the same table, and look like them.
std::string with_table(std::string_view text, const TomlPath& table, const TomlValues& values);
std::string with_value(std::string_view text, const TomlPath& path, std::string_view value);
std::string without(std::string_view text, const TomlPath& path);  // a value, or a table with all that lies in it
// Without the table's head, if it has no value of its own.
std::string without_empty_table(std::string_view text, const TomlPath& table);
bool has_head(std::string_view text, const TomlPath& table);
std::optional<std::string> value_in(std::string_view text, const TomlPath& path);  // as it is written

}  // namespace hf::engine
