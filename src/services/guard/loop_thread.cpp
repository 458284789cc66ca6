#include "services/guard/loop_thread.h"

#include <utility>

#include "kernel/process/thread.h"

namespace hf::guard {

LoopThread::LoopThread(kernel::EventLoop& loop, const char* name, std::function<void()> step)
    : loop_(loop), thread_([this, name, step = std::move(step)] { repeat(name, step); }) {}

LoopThread::~LoopThread() {
  request_end();
  thread_.join();
}

void LoopThread::request_end() {
  loop_.post([this] { stops_ = true; });
}

bool LoopThread::has_ended_by(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(lock_);
  return ended_.wait_until(lock, deadline, [this] { return has_ended_; });
}

void LoopThread::repeat(const char* name, const std::function<void()>& step) {
  kernel::name_thread(name);
  while (!stops_) {
    step();
  }
  const std::lock_guard lock(lock_);
  has_ended_ = true;
  ended_.notify_all();
}

}  // namespace hf::guard
