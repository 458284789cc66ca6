#include "services/web/session.h"

#include <algorithm>
#include <array>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

#include "core/base/text.h"
#include "kernel/files/clock.h"
#include "services/web/request_check.h"

namespace hf::web {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using std::chrono::seconds;
using ErrorCode = boost::system::error_code;

constexpr std::size_t kMostHead = 8192;
constexpr seconds kHeadTime{5};    // from accept to a complete head
constexpr seconds kIdleTime{15};   // from a reply to the next request
constexpr seconds kStuckTime{5};   // a reply of which the client reads nothing
constexpr seconds kReplyTime{60};  // a complete reply
constexpr seconds kEndTime{1};
constexpr seconds kHeartbeat{10};
constexpr seconds kStreamStuckTime{30};
constexpr unsigned kMostRequests = 1000;  // per connection
constexpr std::size_t kMostAhead = std::size_t(64) << 10;
constexpr int kStreamBuffer = 64 << 10;

// Operations return their error instead of throwing it.
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

bool is_about_http(const ErrorCode& error) {
  return error.category() == ErrorCode(http::error::bad_method).category() && error != http::error::end_of_stream &&
         error != http::error::partial_message;
}

class CountedStream {
 public:
  explicit CountedStream(std::size_t& streams) : streams_(streams) { ++streams_; }
  CountedStream(const CountedStream&) = delete;
  CountedStream& operator=(const CountedStream&) = delete;
  ~CountedStream() { --streams_; }

 private:
  std::size_t& streams_;
};

// The number of the last record that the client has seen: a browser sends it in a header when it reconnects, a page
// that has a snapshot sends it in the query.
std::optional<std::uint64_t> last_seen(const Request& request) {
  if (const std::optional<std::uint64_t> number = parse_number<std::uint64_t>(request.header("last-event-id"))) {
    return number;
  }
  constexpr std::string_view kAfter = "after=";
  return request.query.starts_with(kAfter) ? parse_number<std::uint64_t>(request.query.substr(kAfter.size()))
                                           : std::nullopt;
}

}  // namespace

Session::Session(Socket socket, Transport transport, Content& content)
    : stream_(std::move(socket)),
      buffer_(2 * kMostHead),
      wakeup_(stream_.get_executor()),
      transport_(transport),
      content_(content) {}

void Session::close() {
  phase_ = Phase::closed;
  stream_.close();
  wakeup_.cancel();
}

void Session::enter(Phase phase) {
  phase_ = phase_ == Phase::closed ? phase_ : phase;
  since_ = Clock::now();
}

void Session::wake() { wakeup_.cancel(); }

Details Session::details() const { return transport_ == Transport::unix_socket ? Details::shown : content_.over_tcp; }

std::size_t& Session::streams() {
  return transport_ == Transport::unix_socket ? content_.unix_streams : content_.tcp_streams;
}

asio::awaitable<void> Session::run() {
  for (;;) {
    const Received request = co_await read_request();
    if (!request && !request.error()) {
      co_return;
    }
    if (!co_await answer(request)) {
      break;
    }
  }
  // Closing with unread input could destroy a reply in transit.
  ErrorCode ignored;
  stream_.socket().shutdown(Socket::shutdown_send, ignored);
  stream_.expires_after(kEndTime);
  co_await discard_input(stream_);
}

asio::awaitable<Session::Received> Session::read_request() {
  enter(Phase::reading);
  stream_.expires_after(requests_ == 0 ? kHeadTime : kIdleTime);
  http::request_parser<http::empty_body> parser;
  parser.header_limit(kMostHead);
  const auto [error, size] = co_await http::async_read_header(stream_, buffer_, parser, kAsTuple);
  enter(Phase::writing);
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    co_return std::unexpected(text_reply(431, "a request's head has 8192 bytes at most"));
  }
  if (is_about_http(error)) {
    co_return std::unexpected(text_reply(400, error.message()));
  }
  if (error) {
    co_return std::unexpected(std::nullopt);
  }
  Result<Request> request = request_of(parser.get());
  if (!request) {
    co_return std::unexpected(text_reply(400, request.error().message));
  }
  co_return *std::move(request);
}

asio::awaitable<bool> Session::answer(const Received& request) {
  const Clock::time_point deadline = Clock::now() + kReplyTime;
  const bool keeps_alive = request && request->keeps_alive && request->is_get_or_head() && ++requests_ < kMostRequests;
  const Reply reply = request ? reply_to(*request) : *request.error();
  const bool is_stream = request && request->path == kEventsPath && reply.status == 200;
  const After after = keeps_alive && !is_stream ? After::keeps : After::closes;
  const std::string head = render_head(reply, after);
  const bool is_head = request && request->method == "HEAD";
  if (is_stream && !is_head) {
    co_await stream_events(*request, head);
    co_return false;
  }
  if (!co_await send(head, kStuckTime, deadline)) {
    co_return false;
  }
  if (reply.body && !is_head && !co_await send(*reply.body, kStuckTime, deadline)) {
    co_return false;
  }
  co_return after == After::keeps;
}

Reply Session::reply_to(const Request& request) {
  // The unix socket is protected by its file mode, and no browser can reach it.
  const std::string refused = transport_ == Transport::tcp ? why_refused(request, content_.own_name) : "";
  if (!refused.empty()) {
    return text_reply(403, refused);
  }
  if (!request.is_get_or_head()) {
    return text_reply(405, "only GET and HEAD are supported: requests change nothing");
  }
  if (request.path != kEventsPath) {
    return content_.pages.answer(request, content_.board.latest(), {details(), kernel::wall_now()});
  }
  if (streams() >= Content::kMostStreams) {
    return text_reply(503, "there are " + std::to_string(Content::kMostStreams) + " streams already");
  }
  Reply stream;
  stream.type = "text/event-stream";
  return stream;
}

asio::awaitable<void> Session::stream_events(const Request& request, const std::string& head) {
  using namespace asio::experimental::awaitable_operators;
  const CountedStream counted(streams());  // before anything waits: others ask for streams meanwhile
  enter(Phase::streaming);
  ErrorCode ignored;
  stream_.socket().set_option(asio::socket_base::send_buffer_size(kStreamBuffer), ignored);
  content_.records.follow(content_.board);
  const std::optional<std::uint64_t> seen = last_seen(request);
  position_ = seen ? content_.records.position_after(*seen) : content_.records.end();
  const std::uint64_t missed = seen ? content_.records.missed_since(*seen) : 0;
  std::string first = head + "retry: 2000\n\n";
  if (missed > 0) {
    first += render_loss(missed);
  }
  // Both end when either does. (GCC 12 destroys temporaries within a co_await expression twice: there must be none.)
  asio::awaitable<void> sending = send_events(std::move(first));
  asio::awaitable<void> reading = close_at_its_end();
  co_await (std::move(sending) && std::move(reading));
}

asio::awaitable<void> Session::send_events(std::string first) {
  std::string events = std::move(first);
  while (phase_ != Phase::closed && co_await send(events, kStreamStuckTime, Clock::time_point::max())) {
    events = next_events();
    if (events.empty()) {
      wakeup_.expires_after(kHeartbeat);
      const auto [woken] = co_await wakeup_.async_wait(kAsTuple);
      events = woken ? next_events() : ": still here\n\n";
    }
  }
  close();
}

// Closes the stream when the client ends it, which only a pending read detects.
asio::awaitable<void> Session::close_at_its_end() {
  co_await discard_input(stream_.socket());
  close();
}

std::string Session::next_events() {
  const EventLog& records = content_.records;
  std::string events;
  if (position_ < records.first()) {
    events = render_loss(records.first() - position_);
    position_ = records.first();
  }
  for (; position_ < records.end() && events.size() < kMostAhead; ++position_) {
    events += *records.at(position_, details());
  }
  return events;
}

// False where the client reads nothing of it for the time `stuck`, not all of it until the deadline, or has gone.
asio::awaitable<bool> Session::send(std::string_view bytes, seconds stuck, Clock::time_point deadline) {
  while (!bytes.empty()) {
    stream_.expires_at(std::min(Clock::now() + stuck, deadline));
    const auto [error, count] = co_await stream_.async_write_some(asio::buffer(bytes), kAsTuple);
    if (error) {
      co_return false;
    }
    bytes.remove_prefix(count);
    since_ = Clock::now();
  }
  co_return true;
}

template <class From>
asio::awaitable<void> Session::discard_input(From& from) {
  std::array<char, 1024> input{};
  for (bool is_open = true; is_open;) {
    const auto [error, count] = co_await from.async_read_some(asio::buffer(input), kAsTuple);
    is_open = !error;
  }
}

}  // namespace hf::web
