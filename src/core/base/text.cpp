#include "core/base/text.h"

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

std::string quote(std::string_view text) {
  std::string quoted = "'";
  for (const char letter : text.substr(0, kLongestQuote)) {
    const bool printable = static_cast<unsigned char>(letter) >= 0x20 && letter != 0x7f;
    quoted += printable ? letter : '?';
  }
  return quoted + (text.size() > kLongestQuote ? "…'" : "'");
}

}  // namespace hf
