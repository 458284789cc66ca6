#include "core/report/utf8.h"

#include <nlohmann/json.hpp>

namespace hf::report {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr std::string_view kEllipsis = "…";

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; }

// By the first byte alone; 0 where no character begins so.
std::size_t length_by(unsigned char first) {
  return first < 0x80U ? 1 : first < 0xc2U ? 0 : first < 0xe0U ? 2 : first < 0xf0U ? 3 : first < 0xf5U ? 4 : 0;
}

// RFC 3629: no longer form than needed, no surrogates, nothing above U+10FFFF.
bool is_second_byte_fine(unsigned char first, unsigned char second) {
  switch (first) {
    case 0xe0: return second >= 0xa0U;
    case 0xed: return second < 0xa0U;
    case 0xf0: return second >= 0x90U;
    case 0xf4: return second < 0x90U;
    default: return true;
  }
}

// Of the character at the beginning; 0 where there is none.
std::size_t length_of_first(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = length_by(first);
  if (length < 2) {
    return length;
  }
  if (text.size() < length || !is_second_byte_fine(first, static_cast<unsigned char>(text[1]))) {
    return 0;
  }
  for (const char byte : text.substr(1, length - 1)) {
    if (!continues(byte)) {
      return 0;
    }
  }
  return length;
}

}  // namespace

std::string as_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = length_of_first(bytes);
    text += length == 0 ? kReplacement : bytes.substr(0, length);
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

std::string cut_to(std::string_view text, std::size_t most_bytes) {
  if (text.size() <= most_bytes || most_bytes < kEllipsis.size()) {
    return std::string(text.substr(0, most_bytes));
  }
  std::size_t end = most_bytes - kEllipsis.size();
  while (end > 0 && continues(text[end])) {
    --end;
  }
  return std::string(text.substr(0, end)).append(kEllipsis);
}

std::string json_word(std::string_view text) {
  return nlohmann::json(as_utf8(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace hf::report
