// TextTable: text in columns that are as wide as their cells. Marks say what to colour; the printing code decides.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hf::report {

// Marks are control characters, which never reach a terminal unchanged.
inline constexpr char kRed = '\x01';
inline constexpr char kYellow = '\x02';
inline constexpr char kGreen = '\x03';
inline constexpr char kBold = '\x04';
inline constexpr char kPlain = '\x05';

std::string marked(char mark, std::string_view text);

// Text from outside on one line: what would move the cursor or begin a line becomes "?". Marks stay.
std::string on_one_line(std::string_view text);

// Ids of 64 digits cut to 12, as people know them. Not for commands.
std::string with_short_ids(std::string_view text);

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> head) : rows_{std::move(head)} {}

  void add(const std::vector<std::string>& row);
  [[nodiscard]] std::string render() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace hf::report
