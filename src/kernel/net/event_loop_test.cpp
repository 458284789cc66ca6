#include "kernel/net/event_loop.h"

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "kernel/files/clock.h"
#include "kernel/files/fd.h"

namespace hf::kernel {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMillisecond;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    read = Fd(ends[0]);
    write = Fd(ends[1]);
  }
  void put() const { EXPECT_EQ(::write(write.get(), "x", 1), 1); }
  void take() const {
    char byte = 0;
    EXPECT_EQ(::read(read.get(), &byte, 1), 1);
  }

  Fd read;
  Fd write;
};

TEST(EventLoop, RunsTasksInOrder) {
  EventLoop loop;
  std::vector<int> ran;
  for (int i = 0; i < 3; ++i) {
    loop.post([&ran, i] { ran.push_back(i); });
  }
  EXPECT_EQ(loop.run_until(monotonic_now() + kSecond), 3U);
  EXPECT_EQ(ran, (std::vector<int>{0, 1, 2}));
}

TEST(EventLoop, WaitsUntilTheDeadline) {
  EventLoop loop;
  const std::uint64_t begin = monotonic_now();
  EXPECT_EQ(loop.run_until(begin + 30 * kMillisecond), 0U);
  EXPECT_GE(monotonic_now(), begin + 30 * kMillisecond);
  EXPECT_EQ(loop.run_until(begin), 0U) << "a deadline in the past";
  EXPECT_EQ(loop.run_until(0), 0U);
  EXPECT_EQ(loop.run_until(0), 0U);
  loop.post([] {});
  EXPECT_EQ(loop.run_until(0), 1U) << "what is ready runs all the same";
}

TEST(EventLoop, IsWokenByAnotherThread) {
  EventLoop loop;
  bool has_run = false;
  std::thread other([&loop, &has_run] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    loop.post([&has_run] { has_run = true; });
  });
  EXPECT_EQ(loop.run_until(EventLoop::kNever), 1U);
  EXPECT_TRUE(has_run);
  other.join();
}

TEST(EventLoop, RunsTheTaskOfAReadableDescriptor) {
  EventLoop loop;
  const Pipe pipe;
  int count = 0;
  ASSERT_TRUE(loop.watch(pipe.read.get(), [&] {
    pipe.take();
    ++count;
  }));
  EXPECT_EQ(loop.run_until(monotonic_now()), 0U);
  for (int i = 1; i <= 3; ++i) {
    pipe.put();
    EXPECT_EQ(loop.run_until(monotonic_now() + kSecond), 1U);
    EXPECT_EQ(count, i);
  }
  EXPECT_EQ(loop.run_until(monotonic_now()), 0U);
}

TEST(EventLoop, ReturnsToItsCallerAlthoughADescriptorStaysReadable) {
  EventLoop loop;
  const Pipe pipe;
  int count = 0;
  ASSERT_TRUE(loop.watch(pipe.read.get(), [&count] { ++count; }));
  pipe.put();
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(loop.run_until(monotonic_now() + kSecond), 1U);
    EXPECT_EQ(count, i);
  }
}

TEST(EventLoop, LeavesADescriptorThatIsNoLongerWatched) {
  EventLoop loop;
  const Pipe pipe;
  ASSERT_TRUE(loop.watch(pipe.read.get(), [] { ADD_FAILURE(); }));
  EXPECT_EQ(loop.run_until(monotonic_now()), 0U);
  loop.unwatch(pipe.read.get());
  pipe.put();
  EXPECT_EQ(loop.run_until(monotonic_now() + 20 * kMillisecond), 0U);
  pipe.take();  // it is still open
}

TEST(EventLoop, SaysThatADescriptorCannotBeWatched) {
  EventLoop loop;
  const Result<void> watched = loop.watch(-1, [] { ADD_FAILURE(); });
  ASSERT_FALSE(watched);
  EXPECT_EQ(watched.error().code, std::errc::bad_file_descriptor);
  EXPECT_EQ(loop.run_until(monotonic_now() + kMillisecond), 0U);
}

TEST(EventLoop, WatchesANewDescriptorWithTheNumberOfAClosedOne) {
  EventLoop loop;
  int number = -1;
  {
    const Pipe closed;
    number = closed.read.get();
    ASSERT_TRUE(loop.watch(number, [] {}));
    EXPECT_EQ(loop.run_until(monotonic_now()), 0U);
  }
  loop.unwatch(number);
  const Pipe next;
  ASSERT_EQ(next.read.get(), number);
  ASSERT_TRUE(loop.watch(number, [&next] { next.take(); }));
  next.put();
  EXPECT_EQ(loop.run_until(monotonic_now() + kSecond), 1U);
}

}  // namespace
}  // namespace hf::kernel
