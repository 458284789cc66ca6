// Text: what JSON and TOML have in common: strings in quotes, positions, and a mark at the start.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hf::document {

inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // some editors write it at the start of a text

// In double quotes, valid in both formats. Quotes, backslashes and control characters are escaped; other bytes stay.
std::string in_quotes(std::string_view text);

// The position of a byte as "line 3, column 7".
std::string line_and_column(std::string_view text, std::size_t offset);

}  // namespace hf::document
