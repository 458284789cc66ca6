// LoopThread: a thread that repeats one step until it is asked to end. The step waits in an event loop.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "kernel/net/event_loop.h"

namespace hf::guard {

class LoopThread {
 public:
  // `name`: as ps -L shows it. Whatever the step uses, the loop above all, is declared before this object.
  LoopThread(kernel::EventLoop& loop, const char* name, std::function<void()> step);
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;
  ~LoopThread();  // waits for the end without a limit

  void request_end();
  // False: a step is still under way at the deadline.
  bool has_ended_by(std::chrono::steady_clock::time_point deadline);

 private:
  void repeat(const char* name, const std::function<void()>& step);

  kernel::EventLoop& loop_;
  bool stops_ = false;  // read and written in the thread
  std::mutex lock_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread thread_;
};

}  // namespace hf::guard
