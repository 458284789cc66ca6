// Bare: the little about text that is needed before there is a C library. holdfast-runtime hands most calls on before
// its own library has started (programs/holdfast-runtime/quick.cpp), and what runs then may call nothing but itself:
// sources that are called "bare" in their CMakeLists.txt (hf_bare) are built so, and tools/check_bare proves it.
#pragma once

#include <cstddef>
#include <string_view>

namespace hf::bare {

std::string_view text_of(const char* text);

bool is_same(std::string_view text, std::string_view other);
bool contains(std::string_view text, std::string_view part);
std::size_t find(std::string_view text, char letter);  // the text's size where there is none

// Both take a place that lies inside.
inline std::string_view before(std::string_view text, std::size_t at) {
  text.remove_suffix(text.size() - at);
  return text;
}
inline std::string_view from(std::string_view text, std::size_t at) {
  text.remove_prefix(at);
  return text;
}

}  // namespace hf::bare
