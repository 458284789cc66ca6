// Tally: what the program inside the container counts, in memory shared with us.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/report/demo_report.h"

namespace hf::demo {

// Times are nanoseconds of CLOCK_MONOTONIC, which is the same in every container.
struct Counts {
  std::atomic<std::uint64_t> opens;
  std::atomic<std::uint64_t> refused;
  std::atomic<std::uint64_t> outages;
  std::atomic<std::uint64_t> longest_ns;
  std::atomic<std::uint64_t> last_good_at;     // when the last open that was let through began
  std::atomic<std::uint64_t> last_refused_at;  // when the last open that was refused began
  std::atomic<std::int32_t> error;             // errno of the last refused open
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::int32_t>::is_always_lock_free);

class Tally {
 public:
  static Result<Tally> create(const std::string& path);
  static Result<Tally> open(const std::string& path);

  Tally(Tally&& other) noexcept;
  Tally& operator=(Tally&&) = delete;
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;
  ~Tally();

  [[nodiscard]] Counts& counts() const { return *counts_; }
  [[nodiscard]] report::Opens read() const;
  void reset() const;  // the figures of read(), not the times

 private:
  explicit Tally(Counts* counts) : counts_(counts) {}

  Counts* counts_;
};

// The program inside: opens the device node about every 100 µs until its standard input ends. An error of the driver
// (ENXIO: there is none) means that the cgroup let it through. Returns the exit code.
int open_again_and_again(const std::string& tally, const std::string& node);

}  // namespace hf::demo
