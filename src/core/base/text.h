// Text: the few things every parser here does with words and numbers.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hf {

std::string_view trim(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);        // keeps empty parts
std::vector<std::string_view> split_words(std::string_view text);                  // at blanks, no empty parts
std::vector<std::string_view> split(std::string&& text, char separator) = delete;  // the parts would outlive the text
std::vector<std::string_view> split_words(std::string&& text) = delete;
bool has_word(std::string_view list, std::string_view word, char separator = ',');
std::string join(const std::vector<std::string>& parts, std::string_view between);
std::string_view name_in(std::string_view path);  // the last part of a path
std::size_t json_depth(std::string_view text);    // how deep its braces and brackets go; any text has one
std::string quote(std::string_view text);         // for error messages: short, printable, in single quotes

// Text from outside (names, arguments, files of images) as it may be shown on a terminal, in a log, in JSON or HTML:
// one line of valid UTF-8. What controls a terminal, or is no character, becomes "?".
std::string printable(std::string_view text);
std::size_t length_of_character(std::string_view text);  // bytes of the first character; 0 where it is no UTF-8

// Digits of the base and nothing else: no sign, no blank, no overflow.
template <std::unsigned_integral T>
std::optional<T> parse_number(std::string_view text, int base = 10) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace hf
