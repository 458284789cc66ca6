#include "kernel/net/event_loop.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace hf::kernel {
namespace {

namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;
using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC

constexpr std::size_t kMostAtOnce = 64;
constexpr std::chrono::hours kLongest{24};

Clock::time_point time_of(std::uint64_t nanoseconds) {
  const Clock::time_point latest = Clock::now() + kLongest;
  const auto limit = std::uint64_t(std::chrono::nanoseconds(latest.time_since_epoch()).count());
  return nanoseconds < limit ? Clock::time_point(std::chrono::nanoseconds(std::int64_t(nanoseconds))) : latest;
}

}  // namespace

struct EventLoop::Waiting {
  struct Watched {
    Descriptor descriptor;
    Task task;
    bool is_armed = false;

    Watched(asio::io_context& context, Task to_run) : descriptor(context), task(std::move(to_run)) {}
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;
    ~Watched() { end(); }

    void end() { (void)descriptor.release(); }  // the caller closes it
  };

  asio::io_context context{1};  // one thread runs it
  asio::executor_work_guard<asio::io_context::executor_type> stays = asio::make_work_guard(context);
  asio::steady_timer timer{context};
  std::optional<std::uint64_t> timer_at;  // the deadline it is set to
  std::map<int, std::shared_ptr<Watched>> watched;
  std::size_t ran = 0;
  bool is_time_up = false;

  void arm(const std::shared_ptr<Watched>& one) {
    one->is_armed = true;
    one->descriptor.async_wait(Descriptor::wait_read, [this, one](const boost::system::error_code& error) {
      one->is_armed = false;
      if (!error) {
        ++ran;
        one->task();
      }
    });
  }

  void set_timer(std::uint64_t deadline) {
    if (timer_at == deadline) {
      return;
    }
    timer_at = deadline;
    timer.expires_at(time_of(deadline));
    timer.async_wait([this](const boost::system::error_code& error) {
      if (!error) {
        is_time_up = true;
        timer_at.reset();
      }
    });
  }
};

EventLoop::EventLoop() : waiting_(std::make_unique<Waiting>()) {}
EventLoop::~EventLoop() {
  for (const auto& [number, one] : waiting_->watched) {
    one->end();
  }
}

void EventLoop::post(Task task) {
  asio::post(waiting_->context, [waiting = waiting_.get(), task = std::move(task)] {
    ++waiting->ran;
    task();
  });
}

Result<void> EventLoop::watch(int descriptor, Task task) {
  unwatch(descriptor);
  const auto one = std::make_shared<Waiting::Watched>(waiting_->context, std::move(task));
  boost::system::error_code error;
  one->descriptor.assign(descriptor, error);
  if (error) {
    return fail_errno(error.value(), "wait for descriptor " + std::to_string(descriptor));
  }
  waiting_->watched[descriptor] = one;
  return {};
}

void EventLoop::unwatch(int descriptor) {
  const auto found = waiting_->watched.find(descriptor);
  if (found != waiting_->watched.end()) {
    found->second->end();
    waiting_->watched.erase(found);
  }
}

std::size_t EventLoop::run_until(std::uint64_t deadline) {
  Waiting& waiting = *waiting_;
  waiting.ran = 0;
  waiting.is_time_up = false;
  waiting.set_timer(deadline);
  for (const auto& [number, one] : waiting.watched) {
    if (!one->is_armed) {
      waiting.arm(one);
    }
  }
  while (waiting.ran == 0 && !waiting.is_time_up) {
    waiting.context.run_one();
  }
  for (std::size_t i = 0; i < kMostAtOnce && waiting.context.poll_one() > 0; ++i) {
  }
  return waiting.ran;
}

}  // namespace hf::kernel
