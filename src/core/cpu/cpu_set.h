// CpuSet: a set of CPUs, written like cpuset.cpus ("0-3,8"). A plain bitset: no operation allocates.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace hf::cpu {

inline constexpr std::uint32_t kMostCpus = 8192;  // Kernel: CONFIG_NR_CPUS is at most 8192 anywhere
inline constexpr std::uint32_t kLastCpu = kMostCpus - 1;

class CpuSet {
 public:
  class Iterator {
   public:
    using value_type = std::uint32_t;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    Iterator(const CpuSet& set, std::uint32_t cpu) : set_(&set), cpu_(cpu) {}

    std::uint32_t operator*() const { return cpu_; }
    Iterator& operator++() {
      cpu_ = set_->next(cpu_ + 1);
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.cpu_ == b.cpu_; }

   private:
    const CpuSet* set_ = nullptr;
    std::uint32_t cpu_ = kMostCpus;
  };

  [[nodiscard]] Iterator begin() const { return {*this, next(0)}; }  // ascending
  [[nodiscard]] Iterator end() const { return {*this, kMostCpus}; }

  void add(std::uint32_t cpu) {
    words_[cpu / kBits] |= std::uint64_t(1) << cpu % kBits;
    used_ = std::max(used_, cpu / kBits + 1);
  }
  void remove(std::uint32_t cpu) { words_[cpu / kBits] &= ~(std::uint64_t(1) << cpu % kBits); }
  [[nodiscard]] bool contains(std::uint32_t cpu) const {
    return cpu < kMostCpus && (words_[cpu / kBits] >> cpu % kBits & 1) != 0;
  }
  [[nodiscard]] bool contains(const CpuSet& other) const;
  [[nodiscard]] bool empty() const;
  [[nodiscard]] std::uint32_t count() const;
  [[nodiscard]] bool overlaps(const CpuSet& other) const;

  CpuSet& operator|=(const CpuSet& other);
  CpuSet& operator&=(const CpuSet& other);
  CpuSet& operator-=(const CpuSet& other);
  friend CpuSet operator|(CpuSet a, const CpuSet& b) { return a |= b; }
  friend CpuSet operator&(CpuSet a, const CpuSet& b) { return a &= b; }
  friend CpuSet operator-(CpuSet a, const CpuSet& b) { return a -= b; }
  friend bool operator==(const CpuSet& a, const CpuSet& b) { return a.words_ == b.words_; }

 private:
  static constexpr std::uint32_t kBits = 64;

  [[nodiscard]] std::uint32_t next(std::uint32_t cpu) const;  // the first member from `cpu` on; kMostCpus: none

  std::array<std::uint64_t, kMostCpus / kBits> words_ = {};
  std::uint32_t used_ = 0;  // no word from this index on has a bit set
};

std::string to_string(const CpuSet& set);
Result<CpuSet> parse_cpu_set(std::string_view text);  // "" is the empty set

}  // namespace hf::cpu
