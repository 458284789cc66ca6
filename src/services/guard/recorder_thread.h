// RecorderThread: a recorder that runs in its own thread.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "kernel/net/event_loop.h"
#include "services/guard/recorder.h"

namespace hf::guard {

class RecorderThread {
 public:
  RecorderThread(const kernel::Host& host, const Callbacks& callbacks, const report::Snapshot& first);
  RecorderThread(const RecorderThread&) = delete;
  RecorderThread& operator=(const RecorderThread&) = delete;
  ~RecorderThread();

  void post(std::function<void(Recorder&)> work);
  // Writes all pending records; whatever is posted later is lost.
  void finish();

 private:
  void work();

  Recorder recorder_;
  kernel::EventLoop loop_;
  bool stops_ = false;
  std::uint64_t busy_until_ = 0;
  std::thread thread_;
};

}  // namespace hf::guard
