// TextTable: columns for people, as wide as what stands in them. Marks say what to colour; whoever prints decides.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hf::report {

// Control characters that never reach a terminal as they are.
inline constexpr char kRed = '\x01';
inline constexpr char kYellow = '\x02';
inline constexpr char kGreen = '\x03';
inline constexpr char kBold = '\x04';
inline constexpr char kPlain = '\x05';

std::string marked(char mark, std::string_view text);

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> head) : rows_{std::move(head)} {}

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] std::string render() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace hf::report
