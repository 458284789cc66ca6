// TokenBucket: lets a burst through, and then so much per time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hf::notice {

struct BucketSize {
  std::uint32_t burst = 1;
  std::uint64_t refill = 0;  // nanoseconds until one more is let through
};

class TokenBucket {
 public:
  explicit TokenBucket(BucketSize size) : size_(size) {}

  // When the next token is there; not later than `now`: it is there already.
  [[nodiscard]] std::uint64_t next_due() const {
    const std::uint64_t whole = size_.refill * (size_.burst - 1);
    return empty_until_ > whole ? empty_until_ - whole : 0;
  }
  [[nodiscard]] bool is_full(std::uint64_t now) const { return empty_until_ <= now; }
  void take(std::uint64_t now) { empty_until_ = std::max(empty_until_, now) + size_.refill; }

 private:
  BucketSize size_;
  std::uint64_t empty_until_ = 0;  // when all tokens are there again
};

}  // namespace hf::notice
