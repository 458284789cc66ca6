#include "services/cpus/marks.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>

#include "core/base/text.h"
#include "kernel/files/file.h"

namespace hf::cpus {
namespace {

constexpr const char* kPinned = "pinned";
constexpr const char* kByHand = "by_hand";
constexpr std::uint32_t kPrivate = 0600;
constexpr std::size_t kMostMarks = 4096;  // in one file
constexpr std::size_t kLongestName = 1024;

// One mark: two fields with a tab between them.
using Mark = std::pair<std::string, std::string>;

bool is_name(std::string_view text) {
  return text.size() <= kLongestName && text.find_first_of("\t\n") == std::string_view::npos;
}

std::optional<Mark> parse_mark(std::string_view line) {
  const std::size_t tab = line.find('\t');
  if (tab == std::string_view::npos || !is_name(line.substr(0, tab)) || !is_name(line.substr(tab + 1))) {
    return std::nullopt;
  }
  return Mark(line.substr(0, tab), line.substr(tab + 1));
}

std::vector<Mark> read_marks(const std::string& file) {
  std::vector<Mark> marks;
  const std::string text = kernel::read_regular_file(file).value_or("");
  for (const std::string_view line : split(text, '\n')) {
    if (std::optional<Mark> mark = parse_mark(line); mark && marks.size() < kMostMarks) {
      marks.push_back(*std::move(mark));
    }
  }
  return marks;
}

Result<void> write_marks(const std::string& file, const std::vector<Mark>& marks) {
  std::string text;
  std::size_t count = 0;
  for (const auto& [first, second] : marks) {
    if (is_name(first) && is_name(second) && count < kMostMarks) {
      text += first + "\t" + second + "\n";
      ++count;
    }
  }
  return kernel::replace_file(AT_FDCWD, file, {.text = text, .mode = kPrivate, .is_synced = true});
}

}  // namespace

Pinned read_pinned(const std::string& directory) {
  Pinned pinned;
  for (const auto& [id, text] : read_marks(directory + "/" + kPinned)) {
    if (const Result<cpu::CpuSet> cpus = cpu::parse_cpu_set(text); cpus && !id.empty()) {
      pinned[id] = *cpus;
    }
  }
  return pinned;
}

Result<void> write_pinned(const std::string& directory, const Pinned& pinned) {
  std::vector<Mark> marks;
  marks.reserve(pinned.size());
  for (const auto& [id, cpus] : pinned) {
    marks.emplace_back(id, to_string(cpus));
  }
  return write_marks(directory + "/" + kPinned, marks);
}

ByHand read_by_hand(const std::string& directory) {
  ByHand owners;
  for (const auto& [pod, name] : read_marks(directory + "/" + kByHand)) {
    owners.insert({pod, name});
  }
  return owners;
}

Result<void> write_by_hand(const std::string& directory, const ByHand& owners) {
  std::vector<Mark> marks;
  marks.reserve(owners.size());
  for (const cpu::Owner& owner : owners) {
    marks.emplace_back(owner.pod, owner.container);
  }
  return write_marks(directory + "/" + kByHand, marks);
}

}  // namespace hf::cpus
