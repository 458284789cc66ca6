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

// The shares bound the CPU time: 1/1000 of a core while nothing happens, but once a minute if that costs no more than
// 1/300, and 1/50 while containers lose something. A diagnosis of ten containers takes some milliseconds: every 15 s,
// so that a finding goes soon after its cause though no event tells of it. One of 1,000 takes 0.15 to 0.2 s: once a
// minute, and 10 s after a loss.
constexpr std::uint64_t kQuietShare = 1000;
constexpr std::uint64_t kRestShare = 300;
constexpr std::uint64_t kRequestShare = 50;

}  // namespace

void DiagnosisSchedule::request(std::uint64_t now) { requested_ = requested_.value_or(now); }

std::uint64_t DiagnosisSchedule::next() const {
  if (!last_) {
    return has_news_ ? 0 : kNever;
  }
  const std::uint64_t quiet_pause = std::clamp(kQuietShare * cost_, kNewsPause, kLongestPause);
  const std::uint64_t usual = *last_ + std::max(has_news_ ? kNewsPause : quiet_pause, kRestShare * cost_);
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
