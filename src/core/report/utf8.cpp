#include "core/report/utf8.h"

#include <nlohmann/json.hpp>

#include "core/base/text.h"

namespace hf::report {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr std::string_view kEllipsis = "…";

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; }

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

std::string json_word(std::string_view text) {
  return nlohmann::json(as_utf8(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace hf::report
