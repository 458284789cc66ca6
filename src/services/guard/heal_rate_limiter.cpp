#include "services/guard/heal_rate_limiter.h"

#include <algorithm>
#include <chrono>

namespace hf::guard {
namespace {

constexpr double kSecond = 1e9;
constexpr std::uint64_t kFirstPause = 20'000'000;  // 20 ms
constexpr std::uint64_t kCalm = 1'000'000'000;     // time without a heal, beyond the last pause, that ends the fight

}  // namespace

bool HealRateLimiter::take(const container::Limits& limits, std::uint64_t now) {
  if (now < ready_at_) {
    return false;
  }
  const bool is_calm = pause_ != 0 && now - ready_at_ > pause_ + kCalm;
  if (tokens_ < 0 || is_calm) {
    tokens_ = limits.burst;
    pause_ = 0;
  } else if (pause_ == 0) {  // no tokens are added during a fight: a long pause would pay for the next burst
    tokens_ = std::min<double>(limits.burst, tokens_ + double(now - counted_at_) / kSecond * limits.per_second);
  }
  counted_at_ = now;
  if (tokens_ >= 1) {
    tokens_ -= 1;
    return true;
  }
  const auto longest = std::uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(limits.longest_wait).count());
  pause_ = std::min(longest, pause_ == 0 ? kFirstPause : pause_ * 2);
  ready_at_ = now + pause_;
  return false;
}

}  // namespace hf::guard
