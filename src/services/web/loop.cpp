#include "services/web/loop.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <ranges>
#include <thread>
#include <vector>

#include "core/base/text.h"
#include "kernel/files/clock.h"
#include "kernel/process/privileges.h"
#include "services/web/visitor.h"

namespace hf::web {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kHeadTime = 5 * kSecond;    // from accept to a complete head
constexpr std::uint64_t kIdleTime = 15 * kSecond;   // from a reply to the next request
constexpr std::uint64_t kStuckTime = 5 * kSecond;   // a reply of which the client reads nothing
constexpr std::uint64_t kReplyTime = 60 * kSecond;  // a complete reply
constexpr std::uint64_t kEndTime = kSecond;
constexpr std::uint64_t kHeartbeat = 10 * kSecond;
constexpr std::uint64_t kStreamStuckTime = 30 * kSecond;
constexpr std::uint64_t kListenPause = 5 * kSecond;
constexpr unsigned kMostRequests = 1000;  // per connection
constexpr std::size_t kMostAhead = std::size_t(64) << 10;
constexpr int kStreamBuffer = 64 << 10;

constexpr std::uint64_t kStop = 0;
constexpr std::uint64_t kBoard = 1;
constexpr std::uint64_t kTcp = 2;
constexpr std::uint64_t kUnixSocket = 3;
constexpr std::uint64_t kFirstClient = 16;

Body body_of(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

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

void reply_with(Connection& connection, const Reply& reply, bool with_body) {
  connection.phase = Phase::writing;
  connection.began = kernel::monotonic_now();
  connection.deadline = connection.began + kStuckTime;
  connection.put(body_of(render_head(reply, connection.keeps_alive ? After::keeps : After::closes)));
  if (with_body && reply.body) {
    connection.put(reply.body);
  }
}

bool outlives_deadline(Connection& connection) {
  const std::uint64_t now = kernel::monotonic_now();
  if (connection.phase != Phase::streaming || now - connection.began > kStreamStuckTime) {
    return false;
  }
  if (connection.pending() == 0) {
    connection.put(body_of(": still here\n\n"));
  }
  connection.deadline = now + kHeartbeat;
  return true;
}

}  // namespace

Loop::Loop(kernel::Poller poller, const Settings& settings, const Board& board)
    : poller_(std::move(poller)),
      board_(board),
      published_(board.subscribe()),
      settings_(settings),
      own_name_(kernel::own_host_name()),
      next_key_(kFirstClient) {}

Result<std::unique_ptr<Loop>> Loop::open(const Settings& settings, const Board& board) {
  kernel::Poller poller = TRY(kernel::Poller::open());
  std::unique_ptr<Loop> loop(new Loop(std::move(poller), settings, board));
  TRY(loop->poller_.add(loop->stop_.fd(), kStop, kernel::Interest::read));
  TRY(loop->poller_.add(loop->published_->fd(), kBoard, kernel::Interest::read));
  TRY(loop->listen());
  return loop;
}

// The socket comes first: root's access must not depend on a port that any user can occupy. Fails if there is nothing
// to listen on and no retry is pending.
Result<void> Loop::listen() {
  Result<void> done;
  if (!settings_.socket.empty()) {
    Result<kernel::UnixListener> opened = kernel::UnixListener::open(settings_.socket);
    if (opened) {
      unix_listener_.emplace(*std::move(opened));
      TRY(poller_.add(unix_listener_->fd(), kUnixSocket, kernel::Interest::read));
      log("listening socket=" + quote(settings_.socket), false);
    } else {
      log("not-listening socket=" + quote(settings_.socket) + " error=" + quote(opened.error().message), true);
      done = std::unexpected(opened.error());
    }
  }
  if (!settings_.address.empty()) {
    const Result<void> listening = listen_on_address();
    done = unix_listener_ || listening || listen_at_ != 0 ? Result<void>() : listening;
  }
  return done;
}

void Loop::log(const std::string& line, bool is_warning) const {
  if (settings_.log) {
    settings_.log(line, is_warning);
  }
}

Result<void> Loop::listen_on_address() {
  Result<kernel::Fd> opened = kernel::listen_tcp(settings_.address);
  if (opened) {
    TRY(poller_.add(*opened, kTcp, kernel::Interest::read));
    tcp_ = *std::move(opened);
    address_ = kernel::bound_address(tcp_).value_or(settings_.address);
    listen_at_ = 0;
    log("listening address=" + quote(address_), false);
    return {};
  }
  const bool is_taken = opened.error().code == std::errc::address_in_use;
  const bool is_first = listen_at_ == 0;
  listen_at_ = is_taken ? kernel::monotonic_now() + kListenPause : 0;
  if (is_first || !is_taken) {
    log("not-listening address=" + quote(settings_.address) + " error=" + quote(opened.error().message) +
            (is_taken ? " note='what answers there is not holdfast; tried again every 5 s'" : ""),
        true);
  }
  return std::unexpected(opened.error());
}

Details Loop::details_for(const Connection& connection) const {
  return connection.transport() == Transport::unix_socket ? Details::shown : settings_.over_tcp;
}

void Loop::stop() const { stop_.ring(); }

void Loop::run() {
  kernel::block_all_signals();
  kernel::name_thread("hf-web");
  if (const Result<void> limited = kernel::limit_capabilities(0); !limited) {
    log("capabilities error=" + quote(limited.error().message), true);
  }
  for (;;) {
    for (const kernel::Ready& ready : poller_.wait(time_left())) {
      if (ready.key == kStop) {
        return;
      }
      dispatch(ready);
    }
    expire();
  }
}

void Loop::dispatch(const kernel::Ready& ready) {
  switch (ready.key) {
    case kBoard: update_streams(); return;
    case kTcp: accept_clients(tcp_, Transport::tcp); return;
    case kUnixSocket: accept_clients(unix_listener_->fd(), Transport::unix_socket); return;
    default: break;
  }
  const auto client = connections_.find(ready.key);
  if (client != connections_.end()) {
    serve(client, ready);
  }
}

void Loop::accept_clients(const kernel::Fd& listener, Transport transport) {
  constexpr int kMostAtOnce = 32;  // bounded, so that connected clients are served as well
  for (int i = 0; i < kMostAtOnce; ++i) {
    Result<kernel::Fd> socket = kernel::accept_one(listener);
    if (!socket) {
      // Without free descriptors the listener stays ready; the pause avoids a busy loop.
      if (socket.error().code != std::errc::resource_unavailable_try_again) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      return;
    }
    add_client(*std::move(socket), transport);
  }
}

void Loop::add_client(kernel::Fd socket, Transport transport) {
  evict_if_full();
  const auto [client, is_new] = connections_.try_emplace(next_key_++, std::move(socket), transport);
  client->second.deadline = kernel::monotonic_now() + kHeadTime;
  if (!poller_.add(client->second.fd(), client->first, kernel::Interest::read)) {
    connections_.erase(client);
  }
}

// Closes the client that has waited longest without a request, because a genuine client sends one at once.
void Loop::evict_if_full() {
  if (connections_.size() < kMostConnections) {
    return;
  }
  auto evicted =
      std::ranges::find_if(connections_, [](const auto& client) { return client.second.phase == Phase::reading; });
  if (evicted == connections_.end()) {
    evicted =
        std::ranges::find_if(connections_, [](const auto& client) { return client.second.phase != Phase::streaming; });
  }
  connections_.erase(evicted);
}

void Loop::serve(Connections::iterator client, const kernel::Ready& ready) {
  Connection& connection = client->second;
  if (ready.can_read) {
    connection.receive();
    if (connection.phase == Phase::streaming) {
      connection.discard_input();  // a stream takes no requests
    }
  }
  if (ready.is_broken || !advance(connection) ||
      !poller_.change(connection.fd(), client->first, connection.interest())) {
    connections_.erase(client);
  }
}

bool Loop::advance(Connection& connection) {
  for (;;) {
    const std::uint64_t now = kernel::monotonic_now();
    if (connection.flush() && connection.phase == Phase::writing) {
      connection.deadline = std::min(now + kStuckTime, connection.began + kReplyTime);
    }
    if (connection.phase == Phase::streaming && connection.pending() == 0) {
      connection.began = now;
    }
    if (connection.is_broken()) {
      return false;
    }
    if (connection.pending() > 0) {
      return connection.phase != Phase::streaming || !connection.has_ended();
    }
    switch (connection.phase) {
      case Phase::reading:
        if (!read_request(connection)) {
          return !connection.has_ended();
        }
        break;
      case Phase::writing:
        connection.phase = connection.keeps_alive ? Phase::reading : Phase::ending;
        connection.deadline = now + (connection.keeps_alive ? kIdleTime : kEndTime);
        if (!connection.keeps_alive) {
          kernel::end_sending(connection.fd());
        }
        break;
      case Phase::streaming:
        connection.discard_input();
        if (connection.has_ended() || !queue_events(connection)) {
          return !connection.has_ended();
        }
        break;
      case Phase::ending: connection.discard_input(); return !connection.has_ended();
    }
  }
}

// True if a reply is being sent now.
bool Loop::read_request(Connection& connection) {
  if (const std::optional<std::string> head = connection.take_head()) {
    answer(connection, *head);
    return true;
  }
  if (!connection.is_head_too_long()) {
    return false;
  }
  connection.keeps_alive = false;
  reply_with(connection, text_reply(431, "a request's head has 8192 bytes at most"), true);
  return true;
}

void Loop::answer(Connection& connection, const std::string& head) {
  const Result<Request> request = parse_request(head);
  connection.keeps_alive = request && request->keeps_alive && request->is_get_or_head() && !connection.has_ended() &&
                           ++connection.requests < kMostRequests;
  if (!request) {
    reply_with(connection, text_reply(400, request.error().message), true);
    return;
  }
  const Reply reply = reply_to(connection, *request);
  if (reply.status == 200 && request->path == kEventsPath) {
    connection.keeps_alive = false;
    reply_with(connection, reply, false);
    if (request->method == "GET") {
      open_stream(connection, *request);
    }
    return;
  }
  reply_with(connection, reply, request->method != "HEAD");
}

Reply Loop::reply_to(const Connection& connection, const Request& request) {
  // The unix socket is protected by its file mode, and no browser can reach it.
  const std::string refused = connection.transport() == Transport::tcp ? why_refused(request, own_name_) : "";
  if (!refused.empty()) {
    return text_reply(403, refused);
  }
  if (!request.is_get_or_head()) {
    return text_reply(405, "only GET and HEAD are supported: requests change nothing");
  }
  if (request.path != kEventsPath) {
    return pages_.answer(request, board_.latest(), {details_for(connection), kernel::wall_now()});
  }
  if (streams() >= kMostStreams) {
    return text_reply(503, "there are " + std::to_string(kMostStreams) + " streams already");
  }
  Reply stream;
  stream.type = "text/event-stream";
  return stream;
}

void Loop::open_stream(Connection& connection, const Request& request) {
  const std::uint64_t now = kernel::monotonic_now();
  connection.phase = Phase::streaming;
  connection.began = now;
  connection.deadline = now + kHeartbeat;
  kernel::limit_send_buffer(connection.fd(), kStreamBuffer);
  connection.put(body_of("retry: 2000\n\n"));
  records_.follow(board_);
  const std::optional<std::uint64_t> seen = last_seen(request);
  connection.position = seen ? records_.position_after(*seen) : records_.end();
  if (seen && records_.missed_since(*seen) > 0) {
    connection.put(body_of(render_loss(records_.missed_since(*seen))));
  }
}

// True if there is something to send.
bool Loop::queue_events(Connection& connection) {
  if (connection.position < records_.first()) {
    connection.put(body_of(render_loss(records_.first() - connection.position)));
    connection.position = records_.first();
  }
  while (connection.position < records_.end() && connection.pending() < kMostAhead) {
    connection.put(records_.at(connection.position, details_for(connection)));
    ++connection.position;
  }
  return connection.pending() > 0;
}

void Loop::update_streams() {
  published_->silence();
  if (streams() == 0) {
    return;
  }
  records_.follow(board_);
  for (auto client = connections_.begin(); client != connections_.end();) {
    const auto next = std::next(client);
    if (client->second.phase == Phase::streaming) {
      serve(client, {});
    }
    client = next;
  }
}

void Loop::expire() {
  const std::uint64_t now = kernel::monotonic_now();
  if (listen_at_ != 0 && listen_at_ <= now) {
    (void)listen_on_address();
  }
  for (auto client = connections_.begin(); client != connections_.end();) {
    const auto next = std::next(client);
    if (client->second.deadline <= now) {
      if (outlives_deadline(client->second)) {
        serve(client, {});
      } else {
        connections_.erase(client);
      }
    }
    client = next;
  }
}

std::size_t Loop::streams() const {
  return std::size_t(
      std::ranges::count_if(connections_, [](const auto& client) { return client.second.phase == Phase::streaming; }));
}

std::optional<std::uint64_t> Loop::time_left() const {
  if (connections_.empty() && listen_at_ == 0) {
    return std::nullopt;
  }
  constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t first = listen_at_ == 0 ? kNever : listen_at_;
  for (const Connection& connection : connections_ | std::views::values) {
    first = std::min(first, connection.deadline);
  }
  const std::uint64_t now = kernel::monotonic_now();
  return first > now ? first - now : 0;
}

}  // namespace hf::web
