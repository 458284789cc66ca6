#include "adapters/document/text.h"

#include <algorithm>

namespace hf::document {

std::string in_quotes(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result = "\"";
  for (const char character : text) {
    const auto code = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      result += '\\';
      result += character;
    } else if (code < 0x20 || code == 0x7f) {
      result += "\\u00";
      result += kDigits[code >> 4U];
      result += kDigits[code & 0xfU];
    } else {
      result += character;
    }
  }
  return result += '"';
}

std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const std::size_t line = std::size_t(std::ranges::count(before, '\n')) + 1;
  const std::size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(before.size() - start + 1);
}

}  // namespace hf::document
