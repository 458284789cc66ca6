#include "render/text_table.h"

#include <algorithm>
#include <numeric>

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

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string cut_to_width(std::string_view text, std::size_t width) {
  if (width_of(text) <= width) {
    return std::string(text);
  }
  std::string kept;
  std::size_t used = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
      ++end;
    }
    const bool is_mark = text[at] >= kRed && text[at] <= kPlain;
    if (is_mark || used + 1 < width) {
      kept += text.substr(at, end - at);
      used += is_mark ? 0 : 1;
    } else if (used + 1 == width) {
      kept += "…";
      ++used;
    }
    at = end;
  }
  return kept;
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

std::vector<std::size_t> TextTable::widths() const {
  constexpr std::size_t kGap = 2;
  constexpr std::size_t kUseful = 12;  // a column that is cut further says little
  constexpr std::size_t kLeast = 4;
  std::vector<std::size_t> widths(rows_.front().size());
  for (const std::vector<std::string>& row : rows_) {
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(row[i]));
    }
  }
  const std::size_t gaps = kGap * (widths.size() - 1);
  const std::size_t least = std::clamp((most_ - std::min(most_, gaps)) / widths.size(), kLeast, kUseful);
  std::size_t total = std::accumulate(widths.begin(), widths.end(), gaps);
  while (total > most_) {
    // The first column names the thing: it is cut last.
    auto widest = std::max_element(widths.begin() + 1, widths.end());
    widest = widest == widths.end() || *widest <= least ? widths.begin() : widest;
    if (*widest <= least) {
      break;
    }
    --*widest;
    --total;
  }
  return widths;
}

std::string TextTable::render() const {
  const std::vector<std::size_t> widths = this->widths();
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = i < widths.size() ? cut_to_width(row[i], widths[i]) : row[i];
      line += cell;
      if (i + 1 < row.size()) {
        line += std::string(widths[i] - width_of(cell) + 2, ' ');
      }
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace hf::report
