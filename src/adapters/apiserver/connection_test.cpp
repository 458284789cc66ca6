#include "adapters/apiserver/connection.h"

#include <array>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include "kernel/files/fd.h"

namespace hf::apiserver {
namespace {

using boost::asio::ip::tcp;
using kernel::Clock;

struct Listener {
  kernel::Fd socket;
  tcp::endpoint endpoint;
};

Listener listen_on_loopback(int backlog) {
  Listener listener{kernel::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), {}};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener.socket.get(), generic, size), 0);
  EXPECT_EQ(::listen(listener.socket.get(), backlog), 0);
  EXPECT_EQ(::getsockname(listener.socket.get(), generic, &size), 0);
  listener.endpoint = {boost::asio::ip::address_v4::loopback(), ntohs(address.sin_port)};
  return listener;
}

// Connections that nobody accepts: the kernel drops what comes after them, as a host does that is away.
std::array<kernel::Fd, 3> fill(const Listener& listener) {
  std::array<kernel::Fd, 3> filling;
  for (kernel::Fd& one : filling) {
    one = kernel::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)::connect(one.get(), listener.endpoint.data(), socklen_t(listener.endpoint.size()));
  }
  return filling;
}

TEST(Connection, AnAddressThatDoesNotAnswerLeavesTimeForTheNext) {
  const Listener silent = listen_on_loopback(0);
  const std::array<kernel::Fd, 3> filling = fill(silent);
  const Listener server = listen_on_loopback(8);
  Access access;
  access.host = "api";
  access.port = "6443";
  access.is_plain = true;
  const std::atomic<bool> is_cancelled = false;
  const auto connect = [&](const std::vector<tcp::endpoint>& endpoints) {
    const Resolve resolve = [&](const std::string& host, const std::string& port, boost::system::error_code&) {
      return Addresses::create(endpoints.begin(), endpoints.end(), host, port);
    };
    return Connection::open(access, is_cancelled, Clock::now() + std::chrono::seconds(2), resolve);
  };
  const auto connected = connect({silent.endpoint, server.endpoint});
  EXPECT_TRUE(connected) << connected.error().message;
  const auto refused = connect({silent.endpoint});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, std::errc::timed_out) << refused.error().message;
}

}  // namespace
}  // namespace hf::apiserver
