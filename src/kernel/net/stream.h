// Stream: a connection to a unix socket of the host. No operation waits beyond its deadline.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "kernel/files/fd.h"
#include "kernel/files/host.h"

namespace hf::kernel {

using Clock = std::chrono::steady_clock;
inline constexpr Clock::time_point kNoWait{};  // a deadline in the past

class Stream {
 public:
  // The path is resolved on the host; symlinks in it stay below the host's root.
  static Result<Stream> open(const Host& host, const std::string& path, Clock::time_point deadline);

  // Sends all bytes. On failure a part of them may have been sent, and the stream is closed.
  Result<void> send(std::string_view bytes, Clock::time_point deadline);

  // Returns the available bytes, at least one, and waits for it until the deadline. timed_out leaves the stream open,
  // every other error closes it. The error is not_connected where the other end is gone.
  Result<std::string> receive(Clock::time_point deadline);

  void close() { socket_ = Fd(); }
  [[nodiscard]] bool is_open() const { return bool(socket_); }
  [[nodiscard]] int descriptor() const { return socket_.get(); }  // -1 where it is closed

 private:
  Stream(Fd socket, std::string path) : socket_(std::move(socket)), path_(std::move(path)) {}

  std::unexpected<Error> end(int number);
  [[nodiscard]] Result<void> wait(short events, Clock::time_point deadline) const;

  Fd socket_;
  std::string path_;
};

}  // namespace hf::kernel
