// CpuSet: which CPUs, in the words of cpuset.cpus ("0-3,8").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::cpu {

class CpuSet {
 public:
  CpuSet() = default;

  void add(std::uint32_t cpu);
  [[nodiscard]] bool contains(std::uint32_t cpu) const;
  [[nodiscard]] bool empty() const;
  [[nodiscard]] bool overlaps(const CpuSet& other) const;

  friend bool operator==(const CpuSet& a, const CpuSet& b) { return a.words_ == b.words_; }
  friend std::string to_string(const CpuSet& set);

 private:
  std::vector<std::uint64_t> words_;  // no empty one at the end
};

inline constexpr std::uint32_t kLastCpu = 8191;  // Kernel: CONFIG_NR_CPUS is at most 8192 anywhere

Result<CpuSet> parse_cpu_set(std::string_view text);  // "" is the empty set

}  // namespace hf::cpu
