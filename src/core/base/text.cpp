#include "core/base/text.h"

#include <algorithm>
#include <cstddef>

namespace hf {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::size_t kLongestQuote = 120;

// RFC 3629: the first two bytes exclude overlong forms, surrogates and everything above U+10FFFF.
std::size_t length_by(unsigned char first) {
  return first < 0x80U ? 1 : first < 0xc2U ? 0 : first < 0xe0U ? 2 : first < 0xf0U ? 3 : first < 0xf5U ? 4 : 0;
}

bool is_second_byte_fine(unsigned char first, unsigned char second) {
  switch (first) {
    case 0xe0: return second >= 0xa0U;
    case 0xed: return second < 0xa0U;
    case 0xf0: return second >= 0x90U;
    case 0xf4: return second < 0x90U;
    default: return true;
  }
}

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; }

// These are C0, DEL and C1, the characters that change the direction of writing, and the line separators.
bool controls_terminal(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) {
    return first < 0x20U || first == 0x7fU;
  }
  const auto second = static_cast<unsigned char>(character[1]);
  if (first == 0xc2U || first == 0xd8U) {
    return first == 0xc2U ? second < 0xa0U : second == 0x9cU;  // U+0080 to U+009F; U+061C
  }
  const auto third = static_cast<unsigned char>(character.size() > 2 ? character[2] : 0);
  const bool turns = first == 0xe2U && second == 0x80U &&
                     (third == 0x8eU || third == 0x8fU || (third >= 0xa8U && third <= 0xaeU));  // U+200E, U+2028 …
  return turns || (first == 0xe2U && second == 0x81U && third >= 0xa6U && third <= 0xa9U);      // U+2066 to U+2069
}

}  // namespace

std::size_t length_of_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = length_by(first);
  if (length < 2) {
    return length;
  }
  const bool is_whole = text.size() >= length && is_second_byte_fine(first, static_cast<unsigned char>(text[1])) &&
                        std::ranges::all_of(text.substr(1, length - 1), continues);
  return is_whole ? length : 0;
}

std::string printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = length_of_character(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    clean += length == 0 || controls_terminal(character) ? std::string_view("?") : character;
    text.remove_prefix(character.size());
  }
  return clean;
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t start = 0;
  for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator, start)) {
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

std::vector<std::string_view> split_fields(std::string_view text) {
  std::vector<std::string_view> fields;
  for (std::size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = text.find_first_of(kBlanks, at);
    fields.push_back(text.substr(at, end == std::string_view::npos ? end : end - at));
    at = text.find_first_not_of(kBlanks, end);
  }
  return fields;
}

bool list_contains(std::string_view list, std::string_view item, char separator) {
  const std::vector<std::string_view> items = split(list, separator);
  return std::ranges::find(items, item) != items.end();
}

std::string join(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) {
    text += text.empty() ? "" : between;
    text += part;
  }
  return text;
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string directory_of(std::string_view path) { return std::string(path.substr(0, path.rfind('/'))); }

std::string quote(std::string_view text) {
  std::size_t end = std::min(text.size(), kLongestQuote);
  while (end < text.size() && end > 0 && continues(text[end])) {
    --end;
  }
  return "'" + printable(text.substr(0, end)) + (end < text.size() ? "…'" : "'");
}

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr std::string_view kEllipsis = "…";

}  // namespace

std::string as_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = length_of_character(bytes);
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

}  // namespace hf
