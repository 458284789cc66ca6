#include "services/guard/patience.h"

#include <algorithm>
#include <chrono>

namespace hf::guard {
namespace {

constexpr double kSecond = 1e9;
constexpr std::uint64_t kFirstWait = 20'000'000;  // 20 ms

}  // namespace

bool Patience::take(const container::Limits& limits, std::uint64_t now) {
  const double before = tokens_ < 0 ? limits.burst : tokens_;
  const double since = tokens_ < 0 ? 0 : double(now - counted_at_) / kSecond;
  counted_at_ = now;
  tokens_ = std::min<double>(limits.burst, before + since * limits.per_second);
  if (tokens_ >= double(limits.burst) / 2) {
    wait_ = 0;  // it has calmed down
    is_fighting_ = false;
  }
  if (now < ready_at_) {
    return false;
  }
  if (tokens_ >= 1) {
    tokens_ -= 1;
    return true;
  }
  // Used up: one heal now and then, the pause doubled each time.
  const auto longest = std::uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(limits.longest_wait).count());
  wait_ = std::min(longest, wait_ == 0 ? kFirstWait : wait_ * 2);
  ready_at_ = now + wait_;
  is_fighting_ = true;
  return false;
}

}  // namespace hf::guard
