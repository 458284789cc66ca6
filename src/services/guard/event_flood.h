// EventFlood: notices when a process causes so many events that the loop would be woken for each of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hf::guard {

class EventFlood {
 public:
  // `now`: in nanoseconds of CLOCK_MONOTONIC.
  void count(std::size_t events, std::uint64_t now) {
    if (now - counted_since_ > kTime) {
      is_flooded_ = counted_ > kMost;
      counted_since_ = now;
      counted_ = 0;
    }
    counted_ += events;
  }
  [[nodiscard]] bool is_flooded() const { return is_flooded_; }

 private:
  static constexpr std::uint64_t kTime = 100'000'000;
  static constexpr std::size_t kMost = 500;  // events within kTime

  std::uint64_t counted_since_ = 0;
  std::size_t counted_ = 0;
  bool is_flooded_ = false;
};

}  // namespace hf::guard
