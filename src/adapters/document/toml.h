// Toml: the values of a TOML text by their paths.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::document {

using TomlPath = std::vector<std::string>;
using TomlValues = std::map<TomlPath, std::string>;  // each value as TOML; strings of any kind are in double quotes

// Tables without a value are skipped. The error names the line and the column where the text is no TOML.
Result<TomlValues> parse_toml(std::string_view text);
std::string explain_no_toml(std::string_view text);  // why it is no TOML, without the position; "" if it is

bool is_below(const TomlPath& path, const TomlPath& table);  // or the same
TomlPath path_below(const TomlPath& table, const std::string& key);

// Lenient access: what is missing or of another type is absent. A number is true unless it is 0.
std::optional<std::string> string_at(const TomlValues& values, const TomlPath& path);
std::optional<bool> bool_at(const TomlValues& values, const TomlPath& path);

// toml++ 3.3 of Debian 12 misbehaves on some texts, so they are checked before it parses them.
//
// The first non-ASCII character outside strings and comments, missing value or element, or key with hundreds of parts.
// Only the last of these is valid TOML.
std::optional<std::size_t> find_invalid_toml(std::string_view text);
// The first table header that does not begin with a name.
std::optional<std::size_t> find_nameless_header(std::string_view text);

// The offset after the string that begins here; npos where the line ends before a string that must be on one line.
std::size_t end_of_toml_string(std::string_view text, std::size_t begin);

}  // namespace hf::document
