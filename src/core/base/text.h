// Text: string functions that all parsers share: trimming, splitting, quoting, numbers and UTF-8.
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
std::vector<std::string_view> split_fields(std::string_view text);                 // at whitespace, no empty parts
std::vector<std::string_view> split(std::string&& text, char separator) = delete;  // the parts would outlive the text
std::vector<std::string_view> split_fields(std::string&& text) = delete;
bool list_contains(std::string_view list, std::string_view item, char separator = ',');
std::string join(const std::vector<std::string>& parts, std::string_view between);
std::string_view base_name(std::string_view path);  // the last part of a path
std::string directory_of(std::string_view path);    // without its last part: "/dev" of "/dev/null", "" of "/dev"
std::string quote(std::string_view text);           // for error messages: short, printable, in single quotes

// Makes text from outside (names, arguments, files of images) safe to show on a terminal, in a log, in JSON or HTML:
// the result is one line of valid UTF-8. Characters that control a terminal and invalid bytes become "?".
std::string printable(std::string_view text);
std::size_t length_of_character(std::string_view text);  // bytes of the first character; 0 where it is not UTF-8

// "1 rule", "2 rules"
template <std::integral T>
std::string count_of(T count, std::string_view noun) {
  return std::to_string(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

// Accepts digits of the base and nothing else: no sign, no whitespace, no overflow.
template <std::unsigned_integral T>
std::optional<T> parse_number(std::string_view text, int base = 10) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

// Makes valid UTF-8 of any bytes: each invalid byte becomes U+FFFD.
std::string as_utf8(std::string_view bytes);
std::string cut_to(std::string_view text, std::size_t most_bytes);  // ends in "…" where something was left out

}  // namespace hf
