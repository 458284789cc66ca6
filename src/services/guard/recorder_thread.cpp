#include "services/guard/recorder_thread.h"

#include <poll.h>
#include <sys/prctl.h>

#include "kernel/files/clock.h"

namespace hf::guard {
namespace {

constexpr std::uint64_t kBusyTime = 1'000'000'000;  // 1 s after a task more are expected
constexpr int kBusyPause = 25;                      // milliseconds
constexpr int kIdlePause = 5'000;

}  // namespace

RecorderThread::RecorderThread(const kernel::Host& host, const Callbacks& callbacks, const report::Snapshot& first)
    : recorder_(host, callbacks, first), thread_([this] { work(); }) {}

RecorderThread::~RecorderThread() { finish(); }

void RecorderThread::finish() {
  tasks_.post([this] { stops_ = true; });
  if (thread_.joinable()) {
    thread_.join();
  }
}

void RecorderThread::post(std::function<void(Recorder&)> work) {
  tasks_.post([this, work = std::move(work)] { work(recorder_); });
}

void RecorderThread::work() {
  ::prctl(PR_SET_NAME, "hf-recorder");
  while (!stops_) {
    pollfd waiting{tasks_.descriptor(), POLLIN, 0};
    (void)::poll(&waiting, 1, is_idle_ ? kIdlePause : kBusyPause);
    const std::vector<TaskQueue::Task> tasks = tasks_.take();
    for (const TaskQueue::Task& task : tasks) {
      task();
    }
    const std::uint64_t now = kernel::monotonic_now();
    busy_until_ = tasks.empty() ? busy_until_ : now + kBusyTime;
    is_idle_ = now > busy_until_;
    recorder_.tick(now);
  }
  recorder_.flush();
}

}  // namespace hf::guard
