#include "core/base/text.h"

#include <algorithm>
#include <cstddef>

namespace hf {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::size_t kLongestQuote = 120;

}  // namespace

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

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = text.find_first_of(kBlanks, at);
    words.push_back(text.substr(at, end == std::string_view::npos ? end : end - at));
    at = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

bool has_word(std::string_view list, std::string_view word, char separator) {
  const std::vector<std::string_view> words = split(list, separator);
  return std::ranges::find(words, word) != words.end();
}

std::string join(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) {
    text += text.empty() ? "" : between;
    text += part;
  }
  return text;
}

std::string_view name_in(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::size_t json_depth(std::string_view text) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  bool is_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (is_string) {
      at += letter == '\\' ? 1 : 0;
      is_string = letter != '"';
    } else if (letter == '"') {
      is_string = true;
    } else if (letter == '{' || letter == '[') {
      deepest = std::max(deepest, ++depth);
    } else if ((letter == '}' || letter == ']') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

std::string quote(std::string_view text) {
  std::string quoted = "'";
  for (const char letter : text.substr(0, kLongestQuote)) {
    const bool printable = static_cast<unsigned char>(letter) >= 0x20 && letter != 0x7f;
    quoted += printable ? letter : '?';
  }
  return quoted + (text.size() > kLongestQuote ? "…'" : "'");
}

}  // namespace hf
