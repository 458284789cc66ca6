#include "services/guard/loop_thread.h"

#include <atomic>

#include <gtest/gtest.h>

namespace hf::guard {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

TEST(LoopThread, RepeatsItsStepUntilItIsAskedToEnd) {
  kernel::EventLoop loop;
  std::atomic<int> steps = 0;
  LoopThread thread(loop, "hf-test", [&] {
    ++steps;
    loop.run_until(kernel::EventLoop::kNever);
  });
  loop.post([] {});
  while (steps < 2) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(thread.has_ended_by(steady_clock::now()));
  thread.request_end();
  EXPECT_TRUE(thread.has_ended_by(steady_clock::now() + seconds(60)));
}

TEST(LoopThread, IsNotWaitedForBeyondTheDeadline) {
  kernel::EventLoop loop;
  std::atomic<bool> may_go_on = false;
  LoopThread thread(loop, "hf-test", [&] {
    may_go_on.wait(false);
    loop.run_until(kernel::EventLoop::kNever);
  });
  thread.request_end();
  EXPECT_FALSE(thread.has_ended_by(steady_clock::now() + milliseconds(5)));
  may_go_on = true;
  may_go_on.notify_all();
  EXPECT_TRUE(thread.has_ended_by(steady_clock::now() + seconds(60)));
}

}  // namespace
}  // namespace hf::guard
