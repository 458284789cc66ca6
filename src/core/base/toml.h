// Toml: a check of a text before toml++ parses it, because the version in Debian 12 misbehaves on some invalid TOML.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace hf {

// The first position on which it misbehaves: a non-ASCII character outside strings and comments, or a missing value or
// element. Absent in every text that is valid TOML.
std::optional<std::size_t> find_invalid_toml(std::string_view text);

}  // namespace hf
