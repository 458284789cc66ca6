// TaskQueue: tasks passed from one thread to another, in order. The reader can poll a descriptor.
#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "kernel/files/fd.h"

namespace hf::guard {

class TaskQueue {
 public:
  using Task = std::function<void()>;

  TaskQueue();

  void post(Task task);  // never waits for the reader
  std::vector<Task> take();
  [[nodiscard]] int descriptor() const { return wakeup_.get(); }  // readable while there are tasks

 private:
  kernel::Fd wakeup_;
  std::mutex mutex_;
  std::vector<Task> tasks_;
};

}  // namespace hf::guard
