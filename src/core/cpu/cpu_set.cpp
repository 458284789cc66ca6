#include "core/cpu/cpu_set.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "core/base/text.h"

namespace hf::cpu {
namespace {

constexpr std::uint32_t kBits = 64;

}  // namespace

void CpuSet::add(std::uint32_t cpu) {
  if (words_.size() <= cpu / kBits) {
    words_.resize(cpu / kBits + 1);
  }
  words_[cpu / kBits] |= std::uint64_t(1) << cpu % kBits;
}

bool CpuSet::contains(std::uint32_t cpu) const {
  return cpu / kBits < words_.size() && (words_[cpu / kBits] >> cpu % kBits & 1) != 0;
}

bool CpuSet::empty() const { return words_.empty(); }

bool CpuSet::overlaps(const CpuSet& other) const {
  const std::size_t common = std::min(words_.size(), other.words_.size());
  for (std::size_t i = 0; i < common; ++i) {
    if ((words_[i] & other.words_[i]) != 0) {
      return true;
    }
  }
  return false;
}

std::string to_string(const CpuSet& set) {
  std::string text;
  const auto end = std::uint32_t(set.words_.size() * kBits);
  for (std::uint32_t first = 0; first < end; ++first) {
    if (!set.contains(first)) {
      continue;
    }
    std::uint32_t last = first;
    while (set.contains(last + 1)) {
      ++last;
    }
    text += (text.empty() ? "" : ",") + std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
    first = last;
  }
  return text;
}

Result<CpuSet> parse_cpu_set(std::string_view text) {
  CpuSet set;
  if (trim(text).empty()) {
    return set;
  }
  for (const std::string_view part : split(trim(text), ',')) {
    const std::size_t dash = part.find('-');
    const std::optional<std::uint32_t> first = parse_number<std::uint32_t>(part.substr(0, dash));
    const std::optional<std::uint32_t> last =
        dash == std::string_view::npos ? first : parse_number<std::uint32_t>(part.substr(dash + 1));
    if (!first || !last || *first > *last || *last > kLastCpu) {
      return fail(std::errc::invalid_argument, "parse CPU list " + quote(text) + ": want 0-3,8 with CPUs up to " +
                                                   std::to_string(kLastCpu) + ", found " + quote(part));
    }
    for (std::uint32_t cpu = *first; cpu <= *last; ++cpu) {
      set.add(cpu);
    }
  }
  return set;
}

}  // namespace hf::cpu
