#include "services/guard/task_queue.h"

#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

namespace hf::guard {

TaskQueue::TaskQueue() : wakeup_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void TaskQueue::post(Task task) {
  bool was_empty = false;
  {
    const std::lock_guard held(mutex_);
    was_empty = tasks_.empty();
    tasks_.push_back(std::move(task));
  }
  if (was_empty) {
    const std::uint64_t one = 1;
    (void)!::write(wakeup_.get(), &one, sizeof(one));
  }
}

std::vector<TaskQueue::Task> TaskQueue::take() {
  std::uint64_t wakeups = 0;
  (void)!::read(wakeup_.get(), &wakeups, sizeof(wakeups));
  const std::lock_guard held(mutex_);
  return std::exchange(tasks_, {});
}

}  // namespace hf::guard
