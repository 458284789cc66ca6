#include "adapters/apiserver/connection.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <openssl/ssl.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "adapters/apiserver/lookup.h"
#include "core/base/text.h"

namespace hf::apiserver {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using kernel::Clock;

constexpr std::uint64_t kMostBody = std::uint64_t(8) << 20U;
constexpr std::uint32_t kMostHead = 64 * 1024;
constexpr std::chrono::milliseconds kCancelCheck{20};  // between checks whether the call was cancelled
constexpr int kIdleBeforeProbe = 30;                   // seconds
constexpr int kBetweenProbes = 5;                      // seconds
constexpr int kMostProbes = 3;
constexpr int kLongestWithoutAck = 5000;  // milliseconds; less than the time that callers wait for an answer

std::string address_of(const Access& access) {
  const bool has_colons = access.host.find(':') != std::string::npos;
  return (has_colons ? "[" + access.host + "]" : access.host) + ":" + access.port;
}

bool is_address(const std::string& host) {
  error_code error;
  (void)asio::ip::make_address(host, error);
  return !error;
}

// OpenSSL asks on the terminal for the password of an encrypted key, where it has no other way to get it.
std::string no_password(std::size_t, asio::ssl::context::password_purpose) { return {}; }

Result<asio::ssl::context> make_context(const Access& access) {
  // The client behaves the same on every host: no system's configuration of OpenSSL is read.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  asio::ssl::context context(asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  context.set_verify_mode(asio::ssl::verify_peer);
  error_code error;
  context.set_password_callback(no_password, error);
  context.add_certificate_authority(asio::buffer(access.authority), error);
  if (error) {
    return fail(std::errc::invalid_argument, "API server: its certificate authority: " + error.message());
  }
  if (!access.certificate.empty()) {
    context.use_certificate_chain(asio::buffer(access.certificate), error);
    if (!error) {
      context.use_private_key(asio::buffer(access.key), asio::ssl::context::pem, error);
    }
    if (error) {
      return fail(std::errc::invalid_argument, "API server: the client certificate: " + error.message());
    }
  }
  return context;
}

std::optional<std::chrono::seconds> retry_after_of(const http::fields& head) {
  const auto found = head.find(http::field::retry_after);
  if (found == head.end()) {
    return std::nullopt;
  }
  const std::string_view text(found->value().data(), found->value().size());
  const std::optional<std::uint32_t> seconds = parse_number<std::uint32_t>(trim(text));
  return seconds ? std::optional(std::chrono::seconds(*seconds)) : std::nullopt;
}

// Waits for one operation at a time. An operation that does not end in time leaves the connection unusable: its owner
// must destroy it.
class Waiting {
 public:
  Waiting(std::string server, const std::atomic<bool>& is_cancelled)
      : server_(std::move(server)), is_cancelled_(is_cancelled) {}

  asio::io_context& context() { return context_; }
  [[nodiscard]] const std::atomic<bool>& is_cancelled() const { return is_cancelled_; }

  // `start` begins the operation and calls its argument at the end.
  template <class Start>
  Result<void> wait(const char* what, Clock::time_point deadline, Start start) {
    const auto ended = std::make_shared<std::optional<error_code>>();  // outlives this call with the operation
    start([ended](error_code error, auto&&...) { *ended = error; });
    context_.restart();
    while (!*ended) {
      const Clock::time_point now = Clock::now();
      if (is_cancelled_) {
        return fail(std::errc::operation_canceled, about(what, "cancelled"));
      }
      if (now >= deadline) {
        return fail(std::errc::timed_out, about(what, "no answer in time"));
      }
      context_.run_one_until(std::min(deadline, now + kCancelCheck));
    }
    if (**ended) {
      return fail(std::errc::connection_aborted, about(what, (*ended)->message()));
    }
    return {};
  }

  [[nodiscard]] std::string about(const char* what, const std::string& why) const {
    return "API server " + server_ + ": " + what + ": " + why;
  }

 private:
  std::string server_;
  const std::atomic<bool>& is_cancelled_;
  asio::io_context context_;
};

// The server has the request: what follows says nothing about other requests.
Error after_sending(Error error) {
  if (error.code != std::errc::operation_canceled) {
    error.reason = Reason::unanswered;
  }
  return error;
}

// An operation that has not ended refers to all of these.
template <class Stream>
struct Exchange {
  http::request<http::string_body> request;
  boost::beast::flat_buffer buffer{kMostHead + kMostBody};
  std::optional<http::response_parser<http::string_body>> parser;

  Result<Connection::Answer> run(Waiting& waiting, Stream& stream, Clock::time_point deadline) {
    parser.emplace();
    parser->header_limit(kMostHead);
    parser->body_limit(kMostBody);
    TRY(waiting.wait("send", deadline, [&](auto ended) { http::async_write(stream, request, std::move(ended)); }));
    const Result<void> read = waiting.wait(
        "read its answer", deadline, [&](auto ended) { http::async_read(stream, buffer, *parser, std::move(ended)); });
    if (!read) {
      return std::unexpected(after_sending(read.error()));
    }
    Connection::Answer answer;
    answer.is_kept = parser->keep_alive();
    answer.response.status = parser->get().result_int();
    answer.response.retry_after = retry_after_of(parser->get());
    answer.response.body = std::move(parser->get().body());
    return answer;
  }
};

http::request<http::string_body> message_of(const Access& access, const Request& request, const std::string& token) {
  http::request<http::string_body> message;
  message.version(11);
  message.method_string(request.method);
  message.target(access.prefix + request.path);
  message.set(http::field::host, address_of(access));
  message.set(http::field::user_agent, "holdfast-kube");
  message.set(http::field::accept, kJson);
  if (!token.empty()) {
    message.set(http::field::authorization, "Bearer " + token);
  }
  if (!request.body.empty()) {
    message.set(http::field::content_type, request.content_type);
    message.body() = request.body;
  }
  message.prepare_payload();
  return message;
}

// A NAT gateway or a load balancer may forget an idle connection without telling either end. An idle one is probed;
// what is not acknowledged in time ends it, early enough to send the request again over another connection. With
// TCP_USER_TIMEOUT one probe without an answer is enough (net/ipv4/tcp_timer.c).
void notice_dead_peers(int socket) {
  const auto set = [socket](int level, int option, int value) {
    (void)::setsockopt(socket, level, option, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleBeforeProbe);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kBetweenProbes);
  set(IPPROTO_TCP, TCP_KEEPCNT, kMostProbes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kLongestWithoutAck);
}

// Each address has its share of the time: one that does not answer leaves some for the others.
Result<void> connect_to_one(Waiting& waiting, tcp::socket& socket, const Addresses& addresses,
                            Clock::time_point deadline) {
  Result<void> connected = fail(std::errc::host_unreachable, waiting.about("connect", "its name has no address"));
  auto left = std::ptrdiff_t(addresses.size());
  for (const auto& address : addresses) {
    error_code ignored;
    socket.close(ignored);  // ends the attempt before
    const Clock::time_point now = Clock::now();
    connected = waiting.wait("connect", now + (deadline - now) / left--,
                             [&](auto ended) { socket.async_connect(address.endpoint(), std::move(ended)); });
    if (connected || waiting.is_cancelled()) {
      break;
    }
  }
  return connected;
}

Result<void> connect(Waiting& waiting, tcp::socket& socket, const Access& access, Clock::time_point deadline,
                     const Resolve& resolve) {
  // Asio's own resolver would be waited for at the end, however long it hangs.
  const Result<Addresses> found = look_up(access.host, access.port, {waiting.is_cancelled(), deadline}, resolve);
  if (!found) {
    return fail(found.error().code, waiting.about("resolve its name", found.error().message));
  }
  TRY(connect_to_one(waiting, socket, *found, deadline));
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  notice_dead_peers(socket.native_handle());
  return {};
}

class PlainConnection : public Connection {
 public:
  PlainConnection(const Access& access, const std::atomic<bool>& is_cancelled)
      : access_(access), waiting_(address_of(access), is_cancelled), socket_(waiting_.context()) {}

  Result<void> connect(Clock::time_point deadline, const Resolve& resolve) {
    return apiserver::connect(waiting_, socket_, access_, deadline, resolve);
  }
  Result<Answer> exchange(const Request& request, const std::string& token, Clock::time_point deadline) override {
    exchange_.request = message_of(access_, request, token);
    return exchange_.run(waiting_, socket_, deadline);
  }

 private:
  const Access access_;
  Exchange<tcp::socket> exchange_;
  Waiting waiting_;
  tcp::socket socket_;
};

class SecureConnection : public Connection {
 public:
  SecureConnection(const Access& access, asio::ssl::context context, const std::atomic<bool>& is_cancelled)
      : access_(access),
        tls_(std::move(context)),
        waiting_(address_of(access), is_cancelled),
        stream_(waiting_.context(), tls_) {}

  Result<void> connect(Clock::time_point deadline, const Resolve& resolve) {
    TRY(apiserver::connect(waiting_, stream_.next_layer(), access_, deadline, resolve));
    const std::string& name = access_.server_name.empty() ? access_.host : access_.server_name;
    if (!is_address(name)) {
      SSL_set_tlsext_host_name(stream_.native_handle(), name.c_str());
    }
    stream_.set_verify_callback(asio::ssl::host_name_verification(name));
    const Result<void> done = waiting_.wait("TLS", deadline, [&](auto ended) {
      stream_.async_handshake(asio::ssl::stream_base::client, std::move(ended));
    });
    const long verified = SSL_get_verify_result(stream_.native_handle());
    if (!done && verified != X509_V_OK) {
      return fail(std::errc::permission_denied, done.error().message + ": " + X509_verify_cert_error_string(verified));
    }
    return done;
  }
  Result<Answer> exchange(const Request& request, const std::string& token, Clock::time_point deadline) override {
    exchange_.request = message_of(access_, request, token);
    return exchange_.run(waiting_, stream_, deadline);
  }

 private:
  const Access access_;
  Exchange<asio::ssl::stream<tcp::socket>> exchange_;
  asio::ssl::context tls_;
  Waiting waiting_;
  asio::ssl::stream<tcp::socket> stream_;
};

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const Access& access, const std::atomic<bool>& is_cancelled,
                                                     Clock::time_point deadline, const Resolve& resolve) {
  if (access.is_plain) {
    auto plain = std::make_unique<PlainConnection>(access, is_cancelled);
    TRY(plain->connect(deadline, resolve));
    return plain;
  }
  auto secure = std::make_unique<SecureConnection>(access, TRY(make_context(access)), is_cancelled);
  TRY(secure->connect(deadline, resolve));
  return secure;
}

}  // namespace hf::apiserver
