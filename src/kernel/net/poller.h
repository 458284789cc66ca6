// Poller: waits for many descriptors at once. Wakeup: wakes a thread that waits in a Poller.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "kernel/files/fd.h"

namespace hf::kernel {

enum class Interest : std::uint8_t { read, write, both };

struct Ready {
  std::uint64_t key = 0;
  bool can_read = false;
  bool can_write = false;
  bool is_broken = false;  // the other side has closed the connection
};

class Poller {
 public:
  static Result<Poller> open();

  Result<void> add(const Fd& fd, std::uint64_t key, Interest interest);
  Result<void> change(const Fd& fd, std::uint64_t key, Interest interest);
  std::vector<Ready> wait(std::optional<std::uint64_t> nanoseconds);  // absent: without a limit

 private:
  explicit Poller(Fd epoll) : epoll_(std::move(epoll)) {}

  Fd epoll_;
};

class Wakeup {
 public:
  Wakeup();

  [[nodiscard]] const Fd& fd() const { return fd_; }
  void ring() const;
  void silence() const;

 private:
  Fd fd_;
};

// Blocks all signals in this thread, because another thread of the program handles them.
void block_all_signals();
void name_thread(const char* name);  // as ps -L shows it

}  // namespace hf::kernel
