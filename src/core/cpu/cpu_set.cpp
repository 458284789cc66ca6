#include "core/cpu/cpu_set.h"

#include "core/base/text.h"

namespace hf::cpu {

bool CpuSet::contains(const CpuSet& other) const {
  for (std::uint32_t i = 0; i < other.used_; ++i) {
    if ((other.words_[i] & ~words_[i]) != 0) {
      return false;
    }
  }
  return true;
}

bool CpuSet::empty() const {
  return std::all_of(words_.begin(), words_.begin() + used_, [](std::uint64_t word) { return word == 0; });
}

std::uint32_t CpuSet::count() const {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < used_; ++i) {
    count += std::uint32_t(std::popcount(words_[i]));
  }
  return count;
}

bool CpuSet::overlaps(const CpuSet& other) const {
  for (std::uint32_t i = 0; i < std::min(used_, other.used_); ++i) {
    if ((words_[i] & other.words_[i]) != 0) {
      return true;
    }
  }
  return false;
}

CpuSet& CpuSet::operator|=(const CpuSet& other) {
  used_ = std::max(used_, other.used_);
  for (std::uint32_t i = 0; i < other.used_; ++i) {
    words_[i] |= other.words_[i];
  }
  return *this;
}

CpuSet& CpuSet::operator&=(const CpuSet& other) {
  for (std::uint32_t i = 0; i < used_; ++i) {
    words_[i] &= other.words_[i];
  }
  return *this;
}

CpuSet& CpuSet::operator-=(const CpuSet& other) {
  for (std::uint32_t i = 0; i < std::min(used_, other.used_); ++i) {
    words_[i] &= ~other.words_[i];
  }
  return *this;
}

std::uint32_t CpuSet::next(std::uint32_t cpu) const {
  if (cpu >= kMostCpus) {
    return kMostCpus;
  }
  std::uint64_t word = words_[cpu / kBits] >> cpu % kBits << cpu % kBits;
  for (std::uint32_t i = cpu / kBits; i < used_;) {
    if (word != 0) {
      return i * kBits + std::uint32_t(std::countr_zero(word));
    }
    ++i;
    word = i < used_ ? words_[i] : 0;
  }
  return kMostCpus;
}

std::string to_string(const CpuSet& set) {
  std::string text;
  std::optional<std::uint32_t> first;
  for (const std::uint32_t cpu : set) {
    first = first.value_or(cpu);
    if (set.contains(cpu + 1)) {
      continue;
    }
    text += text.empty() ? "" : ",";
    text += std::to_string(*first);
    if (cpu > *first) {
      text += "-";
      text += std::to_string(cpu);
    }
    first.reset();
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
