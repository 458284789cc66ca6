#include "core/resource/health_log.h"

#include <algorithm>

namespace hf::resource {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kShortest = 60 * kSecond;
constexpr std::uint64_t kLongest = 3600 * kSecond;

}  // namespace

// Errors of one incident come in bursts: they only extend the quiet time.
void HealthLog::report(const std::string& unit, const std::string& why, std::uint64_t now) {
  Entry& entry = entries_[unit];
  const bool is_relapse = entry.quiet_time != 0 && now >= entry.until && now < entry.until + kLongest;
  if (entry.quiet_time == 0 || now >= entry.until + kLongest) {
    entry.quiet_time = kShortest;
  } else if (is_relapse) {
    entry.quiet_time = std::min(entry.quiet_time * 2, kLongest);
  }
  entry.why = why;
  entry.until = now + entry.quiet_time;
}

DeviceProblems HealthLog::problems(std::uint64_t now) const {
  DeviceProblems problems;
  for (const auto& [unit, entry] : entries_) {
    if (now < entry.until) {
      problems.emplace(unit, entry.why);
    }
  }
  return problems;
}

std::uint64_t HealthLog::next_recovery(std::uint64_t now) const {
  std::uint64_t next = UINT64_MAX;
  for (const auto& [unit, entry] : entries_) {
    next = now < entry.until ? std::min(next, entry.until) : next;
  }
  return next;
}

}  // namespace hf::resource
