#include "services/web/loop.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <ranges>
#include <thread>
#include <vector>

#include "core/base/text.h"
#include "kernel/clock.h"
#include "kernel/privileges.h"
#include "services/web/visitor.h"

namespace hf::web {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kHeadTime = 5 * kSecond;    // from the first moment to a whole head
constexpr std::uint64_t kIdleTime = 15 * kSecond;   // from a reply to the next head
constexpr std::uint64_t kStuckTime = 5 * kSecond;   // a reply of which nothing is taken
constexpr std::uint64_t kReplyTime = 60 * kSecond;  // a whole reply
constexpr std::uint64_t kEndTime = kSecond;
constexpr std::uint64_t kHeartbeat = 10 * kSecond;
constexpr std::uint64_t kStreamStuckTime = 30 * kSecond;
constexpr std::uint64_t kListenPause = 5 * kSecond;
constexpr unsigned kMostRequests = 1000;  // on one connection
constexpr std::size_t kMostAhead = std::size_t(64) << 10;
constexpr int kStreamBuffer = 64 << 10;

constexpr std::uint64_t kStop = 0;
constexpr std::uint64_t kBoard = 1;
constexpr std::uint64_t kTcp = 2;
constexpr std::uint64_t kPath = 3;
constexpr std::uint64_t kFirstVisitor = 16;

Body body_of(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

// The number of the last record somebody has seen: a browser says it when it comes back, a page that has a snapshot
// says it in the address.
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
      bell_(board.bell()),
      settings_(settings),
      own_name_(kernel::own_host_name()),
      next_key_(kFirstVisitor) {}

Result<std::unique_ptr<Loop>> Loop::open(const Settings& settings, const Board& board) {
  kernel::Poller poller = TRY(kernel::Poller::open());
  std::unique_ptr<Loop> loop(new Loop(std::move(poller), settings, board));
  TRY(loop->poller_.add(loop->stop_.fd(), kStop, kernel::Interest::read));
  TRY(loop->poller_.add(loop->bell_->fd(), kBoard, kernel::Interest::read));
  TRY(loop->listen());
  return loop;
}

// The socket first: root's own way in does not depend on a port that any user can take. Fails where there is nothing to
// listen on, and never will be.
Result<void> Loop::listen() {
  Result<void> done;
  if (!settings_.socket.empty()) {
    Result<kernel::UnixListener> opened = kernel::UnixListener::open(settings_.socket);
    if (opened) {
      path_.emplace(*std::move(opened));
      TRY(poller_.add(path_->fd(), kPath, kernel::Interest::read));
      log("listening socket=" + quote(settings_.socket), false);
    } else {
      log("not-listening socket=" + quote(settings_.socket) + " error=" + quote(opened.error().message), true);
      done = std::unexpected(opened.error());
    }
  }
  if (!settings_.address.empty()) {
    const Result<void> listens = listen_on_address();
    done = path_ || listens || listen_at_ != 0 ? Result<void>() : listens;
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
  return connection.door() == Door::path ? Details::shown : settings_.over_tcp;
}

void Loop::stop() const { stop_.ring(); }

void Loop::run() {
  kernel::leave_signals_to_others();
  kernel::name_thread("hf-web");
  if (const Result<void> limited = kernel::limit_capabilities(0); !limited) {
    log("capabilities error=" + quote(limited.error().message), true);
  }
  for (;;) {
    for (const kernel::Ready& ready : poller_.wait(time_left())) {
      if (ready.key == kStop) {
        return;
      }
      turn(ready);
    }
    expire();
  }
}

void Loop::turn(const kernel::Ready& ready) {
  switch (ready.key) {
    case kBoard: tell_streams(); return;
    case kTcp: let_all_in(tcp_, Door::tcp); return;
    case kPath: let_all_in(path_->fd(), Door::path); return;
    default: break;
  }
  const auto visitor = connections_.find(ready.key);
  if (visitor != connections_.end()) {
    serve(visitor, ready);
  }
}

void Loop::let_all_in(const kernel::Fd& listener, Door door) {
  constexpr int kMostAtOnce = 32;  // those who are in already want to be served too
  for (int i = 0; i < kMostAtOnce; ++i) {
    Result<kernel::Fd> socket = kernel::accept_one(listener);
    if (!socket) {
      // Without descriptors to be had the listener stays ready: better late than in circles.
      if (socket.error().code != std::errc::resource_unavailable_try_again) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      return;
    }
    let_in(*std::move(socket), door);
  }
}

void Loop::let_in(kernel::Fd socket, Door door) {
  make_room();
  const auto [visitor, is_new] = connections_.try_emplace(next_key_++, std::move(socket), door);
  visitor->second.deadline = kernel::monotonic_now() + kHeadTime;
  if (!poller_.add(visitor->second.fd(), visitor->first, kernel::Interest::read)) {
    connections_.erase(visitor);
  }
}

// Who has been silent longest leaves first: a visitor in earnest asks at once.
void Loop::make_room() {
  if (connections_.size() < kMostConnections) {
    return;
  }
  auto leaves =
      std::ranges::find_if(connections_, [](const auto& visitor) { return visitor.second.phase == Phase::reading; });
  if (leaves == connections_.end()) {
    leaves = std::ranges::find_if(connections_,
                                  [](const auto& visitor) { return visitor.second.phase != Phase::streaming; });
  }
  connections_.erase(leaves);
}

void Loop::serve(Connections::iterator visitor, const kernel::Ready& ready) {
  Connection& connection = visitor->second;
  if (ready.can_read) {
    connection.fill();
    if (connection.phase == Phase::streaming) {
      connection.drop_what_has_come();  // whatever a client sends that only listens
    }
  }
  if (ready.is_broken || !advance(connection) ||
      !poller_.change(connection.fd(), visitor->first, connection.interest())) {
    connections_.erase(visitor);
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
        if (!read_on(connection)) {
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
        connection.drop_what_has_come();
        if (connection.has_ended() || !pump(connection)) {
          return !connection.has_ended();
        }
        break;
      case Phase::ending: connection.drop_what_has_come(); return !connection.has_ended();
    }
  }
}

// True where a reply is on its way now.
bool Loop::read_on(Connection& connection) {
  if (const std::optional<std::string> head = connection.take_head()) {
    answer(connection, *head);
    return true;
  }
  if (!connection.is_head_too_long()) {
    return false;
  }
  connection.keeps_alive = false;
  reply_with(connection, say(431, "a request's head has 8192 bytes at most"), true);
  return true;
}

void Loop::answer(Connection& connection, const std::string& head) {
  const Result<Request> request = parse_request(head);
  connection.keeps_alive = request && request->keeps_alive && request->is_question() && !connection.has_ended() &&
                           ++connection.requests < kMostRequests;
  if (!request) {
    reply_with(connection, say(400, request.error().message), true);
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
  // A path in the file system has its own guard, its mode, and no browser goes there.
  const std::string refused = connection.door() == Door::tcp ? why_refused(request, own_name_) : "";
  if (!refused.empty()) {
    return say(403, refused);
  }
  if (!request.is_question()) {
    return say(405, "GET and HEAD are all there is: nothing changes by asking");
  }
  if (request.path != kEventsPath) {
    return pages_.answer(request, board_.latest(), {details_for(connection), kernel::wall_now()});
  }
  if (streams() >= kMostStreams) {
    return say(503, "there are " + std::to_string(kMostStreams) + " streams already");
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
  connection.place = seen ? records_.place_after(*seen) : records_.end();
  if (seen && records_.missed_since(*seen) > 0) {
    connection.put(body_of(render_loss(records_.missed_since(*seen))));
  }
}

// True where there is something to send.
bool Loop::pump(Connection& connection) {
  if (connection.place < records_.first()) {
    connection.put(body_of(render_loss(records_.first() - connection.place)));
    connection.place = records_.first();
  }
  while (connection.place < records_.end() && connection.pending() < kMostAhead) {
    connection.put(records_.at(connection.place, details_for(connection)));
    ++connection.place;
  }
  return connection.pending() > 0;
}

void Loop::tell_streams() {
  bell_->silence();
  if (streams() == 0) {
    return;
  }
  records_.follow(board_);
  for (auto visitor = connections_.begin(); visitor != connections_.end();) {
    const auto next = std::next(visitor);
    if (visitor->second.phase == Phase::streaming) {
      serve(visitor, {});
    }
    visitor = next;
  }
}

void Loop::expire() {
  const std::uint64_t now = kernel::monotonic_now();
  if (listen_at_ != 0 && listen_at_ <= now) {
    (void)listen_on_address();
  }
  for (auto visitor = connections_.begin(); visitor != connections_.end();) {
    const auto next = std::next(visitor);
    if (visitor->second.deadline <= now) {
      if (outlives_deadline(visitor->second)) {
        serve(visitor, {});
      } else {
        connections_.erase(visitor);
      }
    }
    visitor = next;
  }
}

std::size_t Loop::streams() const {
  return std::size_t(std::ranges::count_if(
      connections_, [](const auto& visitor) { return visitor.second.phase == Phase::streaming; }));
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
