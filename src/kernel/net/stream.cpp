#include "kernel/net/stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

namespace hf::kernel {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Several errno values mean that the other end is gone; callers need not tell them apart.
bool is_gone(int number) { return number == EPIPE || number == ECONNRESET || number == ENOTCONN; }

// Kernel: connect(2) on a unix socket waits while the queue of the other side is full, for at most SO_SNDTIMEO, and
// then fails with EAGAIN (net/unix/af_unix.c, unix_stream_connect). A timeout of 0 would mean to wait for ever.
void limit_connect(const Fd& socket, Clock::time_point deadline) {
  const auto left = std::max(std::chrono::duration_cast<microseconds>(deadline - Clock::now()), microseconds(1));
  const timeval limit{left.count() / 1'000'000, left.count() % 1'000'000};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

Result<void> connect_to(const Fd& socket, const Fd& place, const std::string& what, Clock::time_point deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Connects through a descriptor: a path below the root may be too long for an address, and symlinks in it would lead
  // out of the root.
  const std::string path = "/proc/self/fd/" + std::to_string(place.get());
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  for (;;) {
    limit_connect(socket, deadline);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      return {};
    }
    if (errno == EAGAIN || (errno == EINTR && Clock::now() >= deadline)) {
      return fail(std::errc::timed_out, what + ": the connection is not accepted in time");
    }
    if (errno != EINTR) {
      return fail_errno(errno, what);
    }
  }
}

}  // namespace

Result<Stream> Stream::open(const Host& host, const std::string& path, Clock::time_point deadline) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const Fd place(int(::syscall(SYS_openat2, host.root.get(), below_root(path).c_str(), &how, sizeof(how))));
  if (!place) {
    return fail_errno(errno, "connect to " + path);
  }
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) {
    return fail_errno(errno, "connect to " + path);
  }
  TRY(connect_to(socket, place, "connect to " + path, deadline));
  return Stream(std::move(socket), path);
}

std::unexpected<Error> Stream::end(int number) {
  close();
  if (number == 0 || is_gone(number)) {
    return fail(std::errc::not_connected, path_ + ": the other end is gone");
  }
  return fail_errno(number, path_);
}

Result<void> Stream::wait(short events, Clock::time_point deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    pollfd waiting{socket_.get(), events, 0};
    const int ready = left > 0 ? ::poll(&waiting, 1, int(std::min<milliseconds::rep>(left, INT_MAX))) : 0;
    if (ready > 0) {
      return {};
    }
    if (left <= 0) {
      return fail(std::errc::timed_out, path_ + ": no answer in time");
    }
    if (ready < 0 && errno != EINTR) {
      return fail_errno(errno, path_);
    }
  }
}

Result<void> Stream::send(std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(std::size_t(count));
      continue;
    }
    if (errno == EAGAIN) {
      if (const Result<void> ready = wait(POLLOUT, deadline); !ready) {
        close();
        return ready;
      }
    } else if (errno != EINTR) {
      return end(is_open() ? errno : ENOTCONN);
    }
  }
  return {};
}

Result<std::string> Stream::receive(Clock::time_point deadline) {
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count > 0) {
      return std::string(buffer.data(), std::size_t(count));
    }
    if (count < 0 && errno == EAGAIN) {
      TRY(wait(POLLIN, deadline));
    } else if (count == 0 || errno != EINTR) {
      return end(count == 0 || !is_open() ? 0 : errno);
    }
  }
}

}  // namespace hf::kernel
