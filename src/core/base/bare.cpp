#include "core/base/bare.h"

namespace hf::bare {

std::string_view text_of(const char* text) {
  std::size_t size = 0;
  while (text[size] != '\0') {
    ++size;
  }
  return {text, size};
}

bool is_same(std::string_view text, std::string_view other) {
  bool same = text.size() == other.size();
  for (std::size_t i = 0; same && i < text.size(); ++i) {
    same = text[i] == other[i];
  }
  return same;
}

bool contains(std::string_view text, std::string_view part) {
  for (std::size_t at = 0; at + part.size() <= text.size(); ++at) {
    if (is_same(before(from(text, at), part.size()), part)) {
      return true;
    }
  }
  return false;
}

std::size_t find(std::string_view text, char letter) {
  std::size_t at = 0;
  while (at < text.size() && text[at] != letter) {
    ++at;
  }
  return at;
}

}  // namespace hf::bare
