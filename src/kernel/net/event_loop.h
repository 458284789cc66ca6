// EventLoop: what a thread waits for: tasks of other threads, descriptors and a deadline. Boost.Asio does the waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

#include "core/base/result.h"

namespace hf::kernel {

class EventLoop {
 public:
  using Task = std::function<void()>;
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  ~EventLoop();

  // Called from any thread; never waits. Tasks run in order.
  void post(Task task);

  // Runs the task whenever the descriptor is readable. The caller keeps the descriptor open until it calls unwatch() or
  // the loop is destroyed.
  Result<void> watch(int descriptor, Task task);
  void unwatch(int descriptor);

  // Waits for a task or a readable descriptor until the deadline (nanoseconds of CLOCK_MONOTONIC), then runs what is
  // ready. Returns the number of tasks that ran. Each descriptor's task runs once at most, so that one which is always
  // readable cannot keep the caller from its own work.
  std::size_t run_until(std::uint64_t deadline);

 private:
  struct Waiting;
  std::unique_ptr<Waiting> waiting_;
};

}  // namespace hf::kernel
