#include "services/guard/recorder_thread.h"

#include "kernel/files/clock.h"
#include "kernel/process/thread.h"

namespace hf::guard {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kBusyTime = 1'000 * kMillisecond;  // after a task more are expected
constexpr std::uint64_t kBusyPause = 25 * kMillisecond;
constexpr std::uint64_t kIdlePause = 5'000 * kMillisecond;

}  // namespace

RecorderThread::RecorderThread(const kernel::Host& host, const Callbacks& callbacks, const report::Snapshot& first)
    : recorder_(host, callbacks, first), thread_([this] { work(); }) {}

RecorderThread::~RecorderThread() { finish(); }

void RecorderThread::finish() {
  loop_.post([this] { stops_ = true; });
  if (thread_.joinable()) {
    thread_.join();
  }
}

void RecorderThread::post(std::function<void(Recorder&)> work) {
  loop_.post([this, work = std::move(work)] { work(recorder_); });
}

void RecorderThread::work() {
  kernel::name_thread("hf-recorder");
  std::uint64_t now = kernel::monotonic_now();
  while (!stops_) {
    const std::size_t tasks = loop_.run_until(now + (now > busy_until_ ? kIdlePause : kBusyPause));
    now = kernel::monotonic_now();
    busy_until_ = tasks == 0 ? busy_until_ : now + kBusyTime;
    recorder_.tick(now);
  }
  recorder_.flush();
}

}  // namespace hf::guard
