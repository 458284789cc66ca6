#include "services/cluster/guard_reader.h"

#include <thread>

#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "kernel/net/socket.h"
#include "support/fake_host.h"

namespace hf::cluster {
namespace {

TEST(GuardAnswer, IsReadWithItsTag) {
  const Result<GuardAnswer> answer = parse_answer("HTTP/1.1 200 OK\r\nETag: \"7\"\r\nContent-Length: 2\r\n\r\n{}");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200U);
  EXPECT_EQ(answer->tag, "\"7\"");
  EXPECT_EQ(answer->body, "{}");
  EXPECT_TRUE(parse_answer("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"));
  for (const char* text : {"", "HTTP/1.1 200 OK\r\n", "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 abc\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}"}) {
    EXPECT_FALSE(parse_answer(text)) << text;
  }
}

// A guard that gives one answer to each connection.
class FakeGuard {
 public:
  FakeGuard(const std::string& path, std::vector<std::string> answers)
      : listener_(*kernel::UnixListener::open(path)), thread_([this, answers = std::move(answers)] {
          for (const std::string& answer : answers) {
            kernel::Fd client;
            while (!client) {
              Result<kernel::Fd> accepted = kernel::accept_one(listener_.fd().get());
              client = accepted ? *std::move(accepted) : kernel::Fd();
              ::usleep(1000);
            }
            std::array<char, 4096> request{};
            ssize_t count = -1;
            while (count < 0) {
              count = ::recv(client.get(), request.data(), request.size(), 0);
            }
            requests_.emplace_back(request.data(), std::size_t(count));
            (void)::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
          }
        }) {}
  ~FakeGuard() { join(); }
  void join() {
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  std::vector<std::string> requests_;

 private:
  kernel::UnixListener listener_;
  std::thread thread_;
};

TEST(GuardReader, ReadsASnapshotOnceUntilItChanges) {
  const test::FakeHost fake({{"proc/self/mountinfo", "30 1 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n"},
                             {"sys/fs/cgroup/", ""},
                             {"run/", ""}});
  const kernel::Host host = fake.open();
  const std::string body = R"({"version": 1, "at": "2026-11-15T05:14:08.123Z", "containers": []})";
  FakeGuard guard(
      fake.root() + "/run/guard.sock",
      {"HTTP/1.1 200 OK\r\nETag: \"7\"\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body,
       "HTTP/1.1 304 Not Modified\r\nETag: \"7\"\r\n\r\n", "HTTP/1.1 503 Busy\r\n\r\nnot yet\n"});
  GuardReader reader(host, "/run/guard.sock");
  const auto soon = [] { return kernel::Clock::now() + std::chrono::seconds(10); };
  const Result<std::optional<notice::HostState>> first = reader.read(soon());
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_TRUE(*first);
  const Result<std::optional<notice::HostState>> second = reader.read(soon());
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_FALSE(*second);
  const Result<std::optional<notice::HostState>> third = reader.read(soon());
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().message, "holdfastd: 503 not yet");
  guard.join();
  EXPECT_EQ(guard.requests_[0].find("If-None-Match"), std::string::npos);
  EXPECT_NE(guard.requests_[1].find("If-None-Match: \"7\""), std::string::npos);
  EXPECT_FALSE(GuardReader(host, "/run/none.sock").read(soon()));
  EXPECT_FALSE(GuardReader(host, "").read(soon()));
}

}  // namespace
}  // namespace hf::cluster
