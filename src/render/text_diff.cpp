#include "render/text_diff.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hf::report {
namespace {

using Lines = std::vector<std::string_view>;  // each with its newline

constexpr std::size_t kContext = 3;
constexpr std::size_t kLargestTable = std::size_t(4) * 1024 * 1024;

struct Entry {
  char mark = ' ';  // ' ', '-' or '+'
  std::string_view text;
};

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::size_t length = newline == std::string_view::npos ? text.size() : newline + 1;
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

// The length of the longest common subsequence from each pair of lines on.
class CommonLines {
 public:
  CommonLines(const Lines& before, const Lines& after)
      : width_(after.size() + 1), lengths_((before.size() + 1) * width_) {
    for (std::size_t i = before.size(); i-- > 0;) {
      for (std::size_t j = after.size(); j-- > 0;) {
        lengths_[(i * width_) + j] =
            before[i] == after[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
      }
    }
  }

  [[nodiscard]] std::uint32_t at(std::size_t i, std::size_t j) const { return lengths_[(i * width_) + j]; }

 private:
  std::size_t width_;
  std::vector<std::uint32_t> lengths_;
};

void add_all(std::vector<Entry>& entries, char mark, const Lines& lines) {
  for (const std::string_view line : lines) {
    entries.push_back({mark, line});
  }
}

void add_middle(std::vector<Entry>& entries, const Lines& before, const Lines& after) {
  if ((before.size() + 1) * (after.size() + 1) > kLargestTable) {
    add_all(entries, '-', before);
    add_all(entries, '+', after);
    return;
  }
  const CommonLines common(before, after);
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < before.size() || j < after.size()) {
    if (i < before.size() && j < after.size() && before[i] == after[j]) {
      entries.push_back({' ', before[i]});
      ++i;
      ++j;
    } else if (j == after.size() || (i < before.size() && common.at(i + 1, j) >= common.at(i, j + 1))) {
      entries.push_back({'-', before[i++]});
    } else {
      entries.push_back({'+', after[j++]});
    }
  }
}

// Moves each run of changes to the last place where it could stand: added text then begins with its own first line.
void slide_down(std::vector<Entry>& entries) {
  for (std::size_t begin = entries.size(); begin-- > 0;) {
    const char mark = entries[begin].mark;
    const bool is_start = mark != ' ' && (begin == 0 || entries[begin - 1].mark == ' ');
    if (!is_start) {
      continue;
    }
    std::size_t end = begin;
    while (end < entries.size() && entries[end].mark == mark) {
      ++end;
    }
    for (std::size_t first = begin;
         end < entries.size() && entries[end].mark == ' ' && entries[end].text == entries[first].text; ++first, ++end) {
      entries[first].mark = ' ';
      entries[end].mark = mark;
    }
  }
}

std::vector<Entry> compare(const Lines& before, const Lines& after) {
  std::vector<Entry> entries;
  std::size_t head = 0;
  const std::size_t shorter = std::min(before.size(), after.size());
  while (head < shorter && before[head] == after[head]) {
    entries.push_back({' ', before[head++]});
  }
  std::size_t tail = 0;
  while (tail < shorter - head && before[before.size() - tail - 1] == after[after.size() - tail - 1]) {
    ++tail;
  }
  add_middle(entries, {before.begin() + std::ptrdiff_t(head), before.end() - std::ptrdiff_t(tail)},
             {after.begin() + std::ptrdiff_t(head), after.end() - std::ptrdiff_t(tail)});
  add_all(entries, ' ', {before.end() - std::ptrdiff_t(tail), before.end()});
  slide_down(entries);
  return entries;
}

struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Changes with their context lines; those whose context lines touch become one hunk.
std::vector<Span> hunks_of(const std::vector<Entry>& entries) {
  std::vector<Span> hunks;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].mark == ' ') {
      continue;
    }
    const Span around{i - std::min(i, kContext), std::min(i + kContext + 1, entries.size())};
    if (!hunks.empty() && around.begin <= hunks.back().end) {
      hunks.back().end = around.end;
    } else {
      hunks.push_back(around);
    }
  }
  return hunks;
}

std::size_t count_of(const std::vector<Entry>& entries, Span span, char other) {
  return std::size_t(std::count_if(entries.begin() + std::ptrdiff_t(span.begin),
                                   entries.begin() + std::ptrdiff_t(span.end),
                                   [other](const Entry& entry) { return entry.mark == ' ' || entry.mark == other; }));
}

std::string range_of(const std::vector<Entry>& entries, Span hunk, char mark) {
  const std::size_t count = count_of(entries, hunk, mark);
  const std::size_t first = count_of(entries, {0, hunk.begin}, mark) + (count == 0 ? 0 : 1);
  return mark + std::to_string(first) + "," + std::to_string(count);
}

std::string render_hunk(const std::vector<Entry>& entries, Span hunk) {
  std::string text = "@@ " + range_of(entries, hunk, '-') + " " + range_of(entries, hunk, '+') + " @@\n";
  for (std::size_t i = hunk.begin; i < hunk.end; ++i) {
    text += entries[i].mark + std::string(entries[i].text);
    text += entries[i].text.ends_with('\n') ? "" : "\n\\ No newline at end of file\n";
  }
  return text;
}

}  // namespace

std::string render_diff(const FileTexts& file) {
  if (file.before == file.after) {
    return {};
  }
  const std::vector<Entry> entries = compare(lines_of(file.before), lines_of(file.after));
  std::string text = "--- " + (file.before.empty() ? "/dev/null" : file.path) + "\n";
  text += "+++ " + (file.after.empty() ? "/dev/null" : file.path) + "\n";
  for (const Span hunk : hunks_of(entries)) {
    text += render_hunk(entries, hunk);
  }
  return text;
}

}  // namespace hf::report
