#include "services/guard/diagnosis_schedule.h"

#include <algorithm>

namespace hf::guard {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// A loss has not one event alone: its record, with the writer, and the snapshot are ready within a second.
constexpr std::uint64_t kSettling = 1 * kSecond;
constexpr std::uint64_t kRequestPause = 2 * kSecond;
constexpr std::uint64_t kNewsPause = 15 * kSecond;
constexpr std::uint64_t kLongestPause = 60 * kSecond;

// The shares bound the CPU time: at most 1/300 of a core while nothing happens, 1/50 while containers lose something.
// A diagnosis of 1,000 containers takes 0.15 to 0.2 s: once a minute, and 10 s after a loss.
constexpr std::uint64_t kRestShare = 300;
constexpr std::uint64_t kRequestShare = 50;

}  // namespace

void DiagnosisSchedule::request(std::uint64_t now) { requested_ = requested_.value_or(now); }

std::uint64_t DiagnosisSchedule::next() const {
  if (!last_) {
    return has_news_ ? 0 : kNever;
  }
  const std::uint64_t usual = *last_ + std::max(has_news_ ? kNewsPause : kLongestPause, kRestShare * cost_);
  if (!requested_) {
    return usual;
  }
  const std::uint64_t allowed = *last_ + std::max(kRequestPause, kRequestShare * cost_);
  return std::min(usual, std::max(*requested_ + kSettling, allowed));
}

void DiagnosisSchedule::has_taken(std::uint64_t began, std::uint64_t ended, std::uint64_t cpu_ns) {
  has_news_ = false;
  last_ = ended;
  cost_ = cpu_ns;
  if (requested_ && *requested_ <= began) {
    requested_.reset();
  }
}

}  // namespace hf::guard
