#include "services/web/server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <list>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <sys/socket.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "core/base/text.h"
#include "kernel/net/socket.h"
#include "kernel/process/privileges.h"
#include "kernel/process/thread.h"
#include "services/web/session.h"

namespace hf::web {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kMostSessions = 128;        // over TCP, and as many over the socket
constexpr int kMostAtOnce = 32;                   // accepted clients, so that connected ones are served as well
constexpr std::chrono::milliseconds kGrace{250};  // in which a client is not closed for the sake of others
constexpr std::chrono::seconds kListenPause{5};
constexpr std::chrono::milliseconds kAcceptPause{10};
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

}  // namespace

class Server::Service {
 public:
  Service(const Settings& settings, const Board& board)
      : board_(board), settings_(settings), content_{board, settings.over_tcp, kernel::own_host_name()} {}
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  ~Service() {
    if (subscription_) {
      board_.unsubscribe(*subscription_);
    }
    context_.stop();
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  // The socket comes first: root's access must not depend on a port that any user can occupy. Fails if there is nothing
  // to listen on and no retry is pending.
  Result<void> listen() {
    Result<void> done;
    if (!settings_.socket.empty()) {
      done = listen_on_socket();
    }
    if (!settings_.address.empty()) {
      const Result<void> listening = listen_on_address();
      const bool is_taken = !listening && listening.error().code == std::errc::address_in_use;
      if (is_taken) {
        asio::co_spawn(context_, wait_for_address(), asio::detached);
      }
      done = unix_listener_ || listening || is_taken ? Result<void>() : listening;
    }
    return done;
  }

  void start() {
    subscription_ = board_.subscribe([this] {
      if (!is_woken_.exchange(true)) {
        asio::post(context_, [this] { update_streams(); });
      }
    });
    thread_ = std::thread([this] { run(); });
  }

  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  using Sessions = std::list<Session>;  // the oldest first

  void log(const std::string& line, bool is_warning) const {
    if (settings_.log) {
      settings_.log(line, is_warning);
    }
  }

  void run() {
    kernel::block_all_signals();
    kernel::name_thread("hf-web");
    if (const Result<void> limited = kernel::limit_capabilities(0); !limited) {
      log("capabilities error=" + quote(limited.error().message), true);
    }
    context_.run();
  }

  Result<void> listen_on_socket() {
    Result<kernel::UnixListener> opened = kernel::UnixListener::open(settings_.socket);
    if (!opened) {
      log("not-listening socket=" + quote(settings_.socket) + " error=" + quote(opened.error().message), true);
      return std::unexpected(opened.error());
    }
    TRY(accept_on(opened->fd(), Transport::unix_socket));
    unix_listener_.emplace(*std::move(opened));
    log("listening socket=" + quote(settings_.socket), false);
    return {};
  }

  Result<void> listen_on_address() {
    const Result<kernel::Fd> opened = kernel::listen_tcp(settings_.address);
    if (opened) {
      TRY(accept_on(*opened, Transport::tcp));
      address_ = kernel::bound_address(*opened).value_or(settings_.address);
      log("listening address=" + quote(address_), false);
      return {};
    }
    const bool is_taken = opened.error().code == std::errc::address_in_use;
    if (!is_waiting_ || !is_taken) {
      log("not-listening address=" + quote(settings_.address) + " error=" + quote(opened.error().message) +
              (is_taken ? " note='what answers there is not holdfast; tried again every 5 s'" : ""),
          true);
    }
    is_waiting_ = is_taken;
    return std::unexpected(opened.error());
  }

  asio::awaitable<void> wait_for_address() {
    asio::steady_timer timer(context_);
    while (is_waiting_) {
      timer.expires_after(kListenPause);
      co_await timer.async_wait(asio::use_awaitable);
      is_waiting_ = !listen_on_address() && is_waiting_;
    }
  }

  // Keeps a second descriptor of the listener as long as the server runs.
  Result<void> accept_on(const kernel::Fd& listener, Transport transport) {
    kernel::Fd own(::fcntl(listener.get(), F_DUPFD_CLOEXEC, 0));
    boost::system::error_code error;
    asio::posix::stream_descriptor watched(context_);
    watched.assign(own.get(), error);
    if (error) {
      return fail_errno(error.value(), "wait for clients");
    }
    (void)own.release();  // the descriptor closes it
    asio::co_spawn(context_, accept_clients(std::move(watched), transport), asio::detached);
    return {};
  }

  asio::awaitable<void> accept_clients(asio::posix::stream_descriptor listener, Transport transport) {
    asio::steady_timer pause(context_);
    for (;;) {
      const auto [error] = co_await listener.async_wait(asio::posix::stream_descriptor::wait_read, kAsTuple);
      // Without free descriptors or memory the listener stays ready; the pause avoids a busy loop.
      if (!accept_waiting(listener.native_handle(), transport) || error) {
        pause.expires_after(kAcceptPause);
        co_await pause.async_wait(kAsTuple);
      }
    }
  }

  // False where a client may wait and cannot be accepted now.
  bool accept_waiting(int listener, Transport transport) {
    for (int i = 0; i < kMostAtOnce; ++i) {
      if (!make_room(transport)) {
        return false;
      }
      Result<kernel::Fd> socket = kernel::accept_one(listener);
      if (!socket) {
        return socket.error().code == std::errc::resource_unavailable_try_again;
      }
      add_client(*std::move(socket), transport);
    }
    return true;
  }

  void add_client(kernel::Fd accepted, Transport transport) {
    boost::system::error_code error;
    Session::Socket socket(context_);
    socket.assign({transport == Transport::tcp ? AF_INET : AF_UNIX, 0}, accepted.get(), error);
    if (error) {
      return;
    }
    (void)accepted.release();  // the socket closes it
    if (transport == Transport::tcp) {
      socket.set_option(asio::ip::tcp::no_delay(true), error);  // head and body are written one after the other
    }
    Sessions& sessions = sessions_of(transport);
    const auto session = sessions.emplace(sessions.end(), std::move(socket), transport, content_);
    asio::co_spawn(context_, session->run(),
                   [&sessions, session](const std::exception_ptr&) { sessions.erase(session); });
  }

  // Where there are too many clients, closes one that has had its time: the oldest that waits without a request,
  // because a genuine client sends one at once, or else one that does not read its reply. Clients of the socket never
  // make room for those of TCP.
  bool make_room(Transport transport) {
    Sessions& sessions = sessions_of(transport);
    if (sessions.size() < kMostSessions) {
      return true;
    }
    const auto before = std::chrono::steady_clock::now() - kGrace;
    auto evicted =
        std::ranges::find_if(sessions, [before](const Session& it) { return it.awaits_request_since(before); });
    if (evicted == sessions.end()) {
      evicted = std::ranges::find_if(sessions, [before](const Session& it) { return it.awaits_reader_since(before); });
    }
    if (evicted == sessions.end()) {
      return false;
    }
    evicted->close();
    return true;
  }

  Sessions& sessions_of(Transport transport) { return transport == Transport::tcp ? tcp_sessions_ : unix_sessions_; }

  void update_streams() {
    is_woken_ = false;
    if (content_.tcp_streams + content_.unix_streams > 0) {
      content_.records.follow(board_);
      std::ranges::for_each(tcp_sessions_, &Session::wake);
      std::ranges::for_each(unix_sessions_, &Session::wake);
    }
  }

  const Board& board_;
  Settings settings_;
  std::optional<std::uint64_t> subscription_;
  std::optional<kernel::UnixListener> unix_listener_;
  std::string address_;
  bool is_waiting_ = false;  // for an address in use
  std::atomic<bool> is_woken_ = false;
  Content content_;
  asio::io_context context_{1};
  Sessions tcp_sessions_;
  Sessions unix_sessions_;
  std::thread thread_;
};

Result<std::unique_ptr<Server>> Server::start(const Settings& settings, const Board& board) {
  auto service = std::make_unique<Service>(settings, board);
  TRY(service->listen());
  service->start();
  return std::unique_ptr<Server>(new Server(std::move(service)));
}

Server::Server(std::unique_ptr<Service> service) : service_(std::move(service)) {}
Server::~Server() = default;

std::string Server::address() const { return service_->address(); }

}  // namespace hf::web
