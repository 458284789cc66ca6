#include "core/base/base64.h"

#include <cstddef>
#include <cstdint>

namespace hf {
namespace {

std::optional<std::uint32_t> sextet_of(char character) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::size_t at = kAlphabet.find(character);
  return at == std::string_view::npos ? std::nullopt : std::optional(std::uint32_t(at));
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char character : text.substr(0, text.size() - padding)) {
    const std::optional<std::uint32_t> sextet = sextet_of(character);
    if (!sextet) {
      return std::nullopt;
    }
    bits = bits << 6 | *sextet;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += char(bits >> count & 0xff);
    }
  }
  return bytes;
}

}  // namespace hf
