#include "render/text_table.h"

#include <algorithm>

#include "core/base/text.h"

namespace hf::report {
namespace {

// Marks have no width, and a character of several bytes counts once.
std::size_t width_of(std::string_view text) {
  return std::size_t(std::ranges::count_if(text, [](char byte) {
    return (byte < kRed || byte > kPlain) && (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U;
  }));
}

}  // namespace

std::string marked(char mark, std::string_view text) { return mark + std::string(text) + kPlain; }

std::string on_one_line(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::size_t mark = std::min(
        text.size(), std::size_t(std::ranges::find_if(text, [](char byte) { return byte >= kRed && byte <= kPlain; }) -
                                 text.begin()));
    line += printable(text.substr(0, mark));
    line += text.substr(mark, 1);
    text.remove_prefix(std::min(text.size(), mark + 1));
  }
  return line;
}

std::string with_short_ids(std::string_view text) {
  constexpr std::size_t kLong = 64;
  constexpr std::size_t kShort = 12;
  std::string cut;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789abcdef", at), text.size());
    const std::string_view run = text.substr(at, end - at);
    cut += run.size() == kLong ? std::string(run.substr(0, kShort)) + "…" : std::string(run);
    if (end < text.size()) {
      cut += text[end];
    }
    at = end + 1;
  }
  return cut;
}

void TextTable::add(const std::vector<std::string>& row) {
  std::vector<std::string>& added = rows_.emplace_back();
  added.reserve(row.size());
  for (const std::string& cell : row) {
    added.push_back(on_one_line(cell));
  }
}

std::string TextTable::render() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const std::vector<std::string>& row : rows_) {
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(row[i]));
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) {
        line += std::string(widths[i] - width_of(row[i]) + 2, ' ');
      }
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace hf::report
