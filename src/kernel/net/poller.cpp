#include "kernel/net/poller.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <limits>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace hf::kernel {
namespace {

::epoll_event event_of(std::uint64_t key, Interest interest) {
  ::epoll_event event{};
  event.events = interest == Interest::read    ? std::uint32_t(EPOLLIN)
                 : interest == Interest::write ? std::uint32_t(EPOLLOUT)
                                               : std::uint32_t(EPOLLIN) | std::uint32_t(EPOLLOUT);
  event.data.u64 = key;
  return event;
}

// Rounds up, so that a deadline has passed when the wait ends.
int milliseconds_of(std::optional<std::uint64_t> nanoseconds) {
  constexpr std::uint64_t kMillisecond = 1'000'000;
  constexpr std::uint64_t kMost = std::numeric_limits<int>::max();
  return nanoseconds ? int(std::min((*nanoseconds + kMillisecond - 1) / kMillisecond, kMost)) : -1;
}

}  // namespace

Result<Poller> Poller::open() {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) {
    return fail_errno(errno, "make an epoll");
  }
  return Poller(std::move(epoll));
}

Result<void> Poller::add(const Fd& fd, std::uint64_t key, Interest interest) {
  ::epoll_event event = event_of(key, interest);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) < 0) {
    return fail_errno(errno, "wait for a descriptor");
  }
  return {};
}

Result<void> Poller::change(const Fd& fd, std::uint64_t key, Interest interest) {
  ::epoll_event event = event_of(key, interest);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd.get(), &event) < 0) {
    return fail_errno(errno, "wait for a descriptor");
  }
  return {};
}

std::vector<Ready> Poller::wait(std::optional<std::uint64_t> nanoseconds) {
  std::array<::epoll_event, 64> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), int(events.size()), milliseconds_of(nanoseconds));
  std::vector<Ready> ready;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t bits = events[std::size_t(i)].events;
    ready.push_back({events[std::size_t(i)].data.u64, (bits & std::uint32_t(EPOLLIN)) != 0,
                     (bits & std::uint32_t(EPOLLOUT)) != 0,
                     (bits & (std::uint32_t(EPOLLERR) | std::uint32_t(EPOLLHUP))) != 0});
  }
  return ready;
}

Wakeup::Wakeup() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Wakeup::ring() const { (void)::eventfd_write(fd_.get(), 1); }

void Wakeup::silence() const {
  ::eventfd_t count = 0;
  (void)::eventfd_read(fd_.get(), &count);
}

void name_thread(const char* name) { (void)::prctl(PR_SET_NAME, name); }

void block_all_signals() {
  ::sigset_t all{};
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace hf::kernel
