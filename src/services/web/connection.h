// Connection: the bytes received from and queued for one client, and the phase of its exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "kernel/files/fd.h"
#include "kernel/net/poller.h"
#include "services/web/reply.h"

namespace hf::web {

enum class Transport : std::uint8_t { tcp, unix_socket };

// reading: waits for a request. writing: a reply is being sent. streaming: events are sent as they come. ending: the
// reply is complete; input is discarded, because closing with unread input could destroy a reply in transit.
enum class Phase : std::uint8_t { reading, writing, streaming, ending };

class Connection {
 public:
  static constexpr std::size_t kMostHead = 8192;

  Connection(kernel::Fd fd, Transport transport) : fd_(std::move(fd)), transport_(transport) {}

  void receive();        // reads the available input
  bool flush();          // sends what the socket accepts; true if anything was sent
  void put(Body bytes);  // queues bytes to be sent
  void discard_input();

  // The head of the next request, without the empty line at its end.
  std::optional<std::string> take_head();
  [[nodiscard]] bool is_head_too_long() const;

  [[nodiscard]] const kernel::Fd& fd() const { return fd_; }
  [[nodiscard]] Transport transport() const { return transport_; }
  [[nodiscard]] std::size_t pending() const { return pending_; }
  [[nodiscard]] bool is_broken() const { return is_broken_; }
  [[nodiscard]] bool has_ended() const { return has_ended_; }
  [[nodiscard]] kernel::Interest interest() const;

  Phase phase = Phase::reading;
  std::uint64_t deadline = 0;  // nanoseconds of CLOCK_MONOTONIC
  std::uint64_t began = 0;     // start of the reply; of a stream, when its queue was last empty
  std::uint64_t position = 0;  // of a stream: the next event
  unsigned requests = 0;
  bool keeps_alive = true;

 private:
  kernel::Fd fd_;
  Transport transport_;
  std::string in_;
  std::deque<Body> out_;
  std::size_t sent_ = 0;  // bytes of the first body in out_
  std::size_t pending_ = 0;
  bool is_broken_ = false;
  bool has_ended_ = false;  // the client has closed its side
};

}  // namespace hf::web
