// A server and its clients, for tests.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "kernel/files/clock.h"
#include "kernel/files/fd.h"
#include "services/web/server.h"

namespace hf::web {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A client that waits for replies with a timeout.
class Client {
 public:
  explicit Client(kernel::Fd fd) : fd_(std::move(fd)) {}

  void send(const std::string& text) const { (void)::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL); }

  // Everything received until `expected` has come, the server closes, or the time is up.
  const std::string& receive(const std::string& expected, std::chrono::milliseconds timeout = 5s) {
    const Clock::time_point end = Clock::now() + timeout;
    while (!ended_ && (expected.empty() || received_.find(expected) == std::string::npos)) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
      ::pollfd polled{fd_.get(), POLLIN, 0};
      if (left <= 0ms || ::poll(&polled, 1, int(left.count())) <= 0) {
        break;
      }
      std::array<char, 65536> buffer{};
      const ssize_t count = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
      ended_ = count <= 0;
      received_.append(buffer.data(), std::size_t(std::max<ssize_t>(count, 0)));
    }
    return received_;
  }

  [[nodiscard]] bool ended() const { return ended_; }
  void forget() { received_.clear(); }

 private:
  kernel::Fd fd_;
  std::string received_;
  bool ended_ = false;
};

class ServerTest : public testing::Test {
 protected:
  void SetUp() override { start({"127.0.0.1:0", ""}); }

  void start(const Settings& settings) {
    server_.reset();
    Result<std::unique_ptr<Server>> server = Server::start(settings, board_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
  }

  [[nodiscard]] Client connect_client() const {
    const std::string address = server_->address();
    ::sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(std::uint16_t(std::stoi(address.substr(address.rfind(':') + 1))));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    kernel::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const ::sockaddr*>(&name), sizeof name), 0);
    return Client(std::move(fd));
  }

  [[nodiscard]] std::string ask(const std::string& line, const std::string& headers = "Host: localhost\r\n") const {
    Client client = connect_client();
    client.send(line + " HTTP/1.1\r\n" + headers + "Connection: close\r\n\r\n");
    return client.receive("");
  }

  [[nodiscard]] Client stream(const std::string& headers = "") const {
    Client client = connect_client();
    client.send("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
    client.receive("retry: 2000\n\n");
    return client;
  }

  void publish_snapshot(bool is_blind = false, std::int64_t age = 0) {
    const auto snapshot = std::make_shared<report::Snapshot>();
    snapshot->at = kernel::wall_now() - age;
    snapshot->is_blind = is_blind;
    snapshot->why_blind = is_blind ? "no\x1b capability" : "";
    snapshot->host_name = "</script>\"";
    board_.publish(snapshot);
  }

  void publish_record(std::uint64_t number, std::size_t size = 10) {
    report::BlameRecord record;
    record.number = number;
    record.container = std::string(size, 'x');
    board_.publish(std::make_shared<const report::BlameRecord>(std::move(record)));
  }

  Board board_;
  std::unique_ptr<Server> server_;
};

inline bool has_status(const std::string& answer, int status) {
  return answer.starts_with("HTTP/1.1 " + std::to_string(status) + " ");
}

}  // namespace hf::web
