// TextTable: text in columns that are as wide as their cells. Marks say what to colour; the printing code decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
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

std::string or_dash(const std::string& text);  // "-" where it is empty

// At most so many columns wide, with "…" where something was left out. Marks stay, so that a colour ends.
std::string cut_to_width(std::string_view text, std::size_t width);

inline constexpr std::size_t kAnyWidth = std::numeric_limits<std::size_t>::max();

class TextTable {
 public:
  // `most`: the width of the terminal. The widest columns are cut until the table fits.
  explicit TextTable(std::vector<std::string> head, std::size_t most = kAnyWidth)
      : rows_{std::move(head)}, most_(most) {}

  void add(const std::vector<std::string>& row);
  [[nodiscard]] std::string render() const;

 private:
  [[nodiscard]] std::vector<std::size_t> widths() const;

  std::vector<std::vector<std::string>> rows_;
  std::size_t most_;
};

}  // namespace hf::report
