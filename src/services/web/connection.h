// Connection: one visitor's bytes, both ways, and where the talk stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "kernel/fd.h"
#include "kernel/poller.h"
#include "services/web/reply.h"

namespace hf::web {

enum class Door : std::uint8_t { tcp, path };

// reading: waits for a request. writing: a reply is on its way. streaming: events as they come. ending: all is said,
// and what the visitor still sends is thrown away, so that the reply is not lost with the connection.
enum class Phase : std::uint8_t { reading, writing, streaming, ending };

class Connection {
 public:
  static constexpr std::size_t kMostHead = 8192;

  Connection(kernel::Fd fd, Door door) : fd_(std::move(fd)), door_(door) {}

  void fill();                // takes what has come
  bool flush();               // sends what is taken; true where something was
  void put(Body bytes);       // to be sent
  void drop_what_has_come();  //

  // The next request's head, without the empty line at its end.
  std::optional<std::string> take_head();
  [[nodiscard]] bool is_head_too_long() const;

  [[nodiscard]] const kernel::Fd& fd() const { return fd_; }
  [[nodiscard]] Door door() const { return door_; }
  [[nodiscard]] std::size_t pending() const { return pending_; }
  [[nodiscard]] bool is_broken() const { return is_broken_; }
  [[nodiscard]] bool has_ended() const { return has_ended_; }
  [[nodiscard]] kernel::Interest interest() const;

  Phase phase = Phase::reading;
  std::uint64_t deadline = 0;  // nanoseconds of CLOCK_MONOTONIC
  std::uint64_t began = 0;     // the reply, or the last time a stream took something
  std::uint64_t place = 0;     // of a stream: the next event
  unsigned requests = 0;
  bool keeps_alive = true;

 private:
  kernel::Fd fd_;
  Door door_;
  std::string in_;
  std::deque<Body> out_;
  std::size_t sent_ = 0;  // of the first
  std::size_t pending_ = 0;
  bool is_broken_ = false;
  bool has_ended_ = false;  // the visitor sends no more
};

}  // namespace hf::web
