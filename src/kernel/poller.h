// Poller: waits for many descriptors at once. Bell: wakes a thread that waits in one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "kernel/fd.h"

namespace hf::kernel {

enum class Interest : std::uint8_t { read, write, both };

struct Ready {
  std::uint64_t key = 0;
  bool can_read = false;
  bool can_write = false;
  bool is_broken = false;  // the other side is gone altogether
};

class Poller {
 public:
  static Result<Poller> open();

  Result<void> add(const Fd& fd, std::uint64_t key, Interest interest);
  Result<void> change(const Fd& fd, std::uint64_t key, Interest interest);
  std::vector<Ready> wait(std::optional<std::uint64_t> nanoseconds);  // absent: as long as it takes

 private:
  explicit Poller(Fd epoll) : epoll_(std::move(epoll)) {}

  Fd epoll_;
};

class Bell {
 public:
  Bell();

  [[nodiscard]] const Fd& fd() const { return fd_; }
  void ring() const;
  void silence() const;

 private:
  Fd fd_;
};

// For a thread of a program in which one thread takes all signals.
void leave_signals_to_others();
void name_thread(const char* name);  // as ps -L shows it

}  // namespace hf::kernel
