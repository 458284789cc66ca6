// Session: one client. Reads its requests and sends the replies, or a stream of events, until one side ends it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include "services/web/board.h"
#include "services/web/event_log.h"
#include "services/web/pages.h"
#include "services/web/reply.h"
#include "services/web/request.h"

namespace hf::web {

enum class Transport : std::uint8_t { tcp, unix_socket };

// What all sessions show. One thread uses it.
struct Content {
  static constexpr std::size_t kMostStreams = 16;  // of each transport: clients over TCP take none from root's programs

  const Board& board;
  Details over_tcp = Details::hidden;
  std::string own_name;  // this host's
  Pages pages = {};
  EventLog records = {};
  std::size_t tcp_streams = 0;
  std::size_t unix_streams = 0;
};

class Session {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Clock = std::chrono::steady_clock;

  Session(Socket socket, Transport transport, Content& content);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() = default;

  boost::asio::awaitable<void> run();
  void close();  // run() ends soon after
  void wake();   // there may be new records

  // It has waited since then for a request, or for the client to read its reply.
  [[nodiscard]] bool awaits_request_since(Clock::time_point time) const {
    return phase_ == Phase::reading && since_ <= time;
  }
  [[nodiscard]] bool awaits_reader_since(Clock::time_point time) const {
    return phase_ == Phase::writing && since_ <= time;
  }

 private:
  enum class Phase : std::uint8_t { reading, writing, streaming, closed };
  template <class Value>
  using Awaitable = boost::asio::awaitable<Value>;

  // Or the reply to what is no request; none where the client has gone, or sent nothing in time.
  using Received = std::expected<Request, std::optional<Reply>>;
  Awaitable<Received> read_request();
  Awaitable<bool> answer(const Received& request);  // false: no further request is read
  Reply reply_to(const Request& request);
  Awaitable<void> stream_events(const Request& request, const std::string& head);
  Awaitable<void> send_events(std::string first);
  std::string next_events();
  Awaitable<bool> send(std::string_view bytes, std::chrono::seconds stuck, Clock::time_point deadline);
  Awaitable<void> close_at_its_end();
  template <class From>
  Awaitable<void> discard_input(From& from);
  void enter(Phase phase);
  [[nodiscard]] Details details() const;
  std::size_t& streams();  // of its transport

  boost::beast::basic_stream<boost::asio::generic::stream_protocol> stream_;
  boost::beast::flat_buffer buffer_;
  boost::asio::steady_timer wakeup_;
  Transport transport_;
  Content& content_;
  Phase phase_ = Phase::reading;
  Clock::time_point since_ = Clock::now();  // what its phase waits for last happened
  unsigned requests_ = 0;
  std::uint64_t position_ = 0;  // of a stream: the next event
};

}  // namespace hf::web
