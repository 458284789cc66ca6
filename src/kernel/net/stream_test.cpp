#include "kernel/net/stream.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/fake_host.h"

namespace hf::kernel {
namespace {

using std::chrono::milliseconds;
using test::FakeHost;

constexpr const char* kPath = "/run/a/socket";

const test::Files kFiles = {{"proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
                            {"run/a/", ""}};

class Listener {
 public:
  explicit Listener(const FakeHost& host) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{AF_UNIX, {}};
    (host.root() + kPath).copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(socket_.get(), 0), 0);
  }

  [[nodiscard]] Fd accept() const { return Fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

 private:
  Fd socket_;
};

Clock::time_point in(int count) { return Clock::now() + milliseconds(count); }

TEST(Stream, CarriesBytesBothWays) {
  const FakeHost host(kFiles);
  const Listener listener(host);
  Stream stream = Stream::open(host.open(), kPath, in(20'000)).value();
  const Fd other = listener.accept();
  EXPECT_TRUE(stream.send("hello", in(20'000)));
  char bytes[16] = {};
  EXPECT_EQ(::read(other.get(), bytes, sizeof(bytes)), 5);
  EXPECT_EQ(::write(other.get(), bytes, 5), 5);
  EXPECT_EQ(stream.receive(in(20'000)).value(), "hello");
}

TEST(Stream, FollowsSymlinksBelowTheHostsRootOnly) {
  const FakeHost host(kFiles);
  const Listener listener(host);
  std::filesystem::create_directory_symlink("/run", host.root() + "/var");
  EXPECT_TRUE(Stream::open(host.open(), "/var/a/socket", in(20'000)));
}

TEST(Stream, IsRefusedWhereNoProcessListens) {
  const FakeHost host(kFiles);
  EXPECT_EQ(Stream::open(host.open(), kPath, in(20'000)).error().code, std::errc::no_such_file_or_directory);
  EXPECT_EQ(Stream::open(host.open(), "/run/a", in(20'000)).error().code, std::errc::connection_refused);
  {
    const Listener gone(host);
  }
  EXPECT_EQ(Stream::open(host.open(), kPath, in(20'000)).error().code, std::errc::connection_refused);
}

TEST(Stream, DoesNotWaitForAFullQueueBeyondTheDeadline) {
  const FakeHost host(kFiles);
  const Listener listener(host);
  const Result<Stream> first = Stream::open(host.open(), kPath, in(20'000));  // it fills the queue
  const Clock::time_point start = Clock::now();
  EXPECT_EQ(Stream::open(host.open(), kPath, in(50)).error().code, std::errc::timed_out);
  EXPECT_EQ(Stream::open(host.open(), kPath, kNoWait).error().code, std::errc::timed_out);
  EXPECT_LT(Clock::now() - start, milliseconds(10'000));
}

TEST(Stream, WaitsForBytesUntilTheDeadline) {
  const FakeHost host(kFiles);
  const Listener listener(host);
  Stream stream = Stream::open(host.open(), kPath, in(20'000)).value();
  const Clock::time_point start = Clock::now();
  EXPECT_EQ(stream.receive(in(50)).error().code, std::errc::timed_out);
  EXPECT_EQ(stream.receive(kNoWait).error().code, std::errc::timed_out);
  EXPECT_LT(Clock::now() - start, milliseconds(10'000));
  EXPECT_TRUE(stream.is_open());
}

TEST(Stream, ClosesWhenNotAllBytesCouldBeSent) {
  const FakeHost host(kFiles);
  const Listener listener(host);
  Stream stream = Stream::open(host.open(), kPath, in(20'000)).value();
  const Clock::time_point start = Clock::now();
  EXPECT_EQ(stream.send(std::string(std::size_t(64) << 20, 'x'), in(50)).error().code, std::errc::timed_out);
  EXPECT_LT(Clock::now() - start, milliseconds(10'000));
  EXPECT_FALSE(stream.is_open());
  EXPECT_EQ(stream.descriptor(), -1);
}

TEST(Stream, ReportsThatTheOtherEndIsGone) {
  const FakeHost host(kFiles);
  const Listener listener(host);
  for (const bool sends : {true, false}) {
    Stream stream = Stream::open(host.open(), kPath, in(20'000)).value();
    {
      const Fd closed = listener.accept();
    }
    const std::errc code = sends ? stream.send("x", in(20'000)).error().code : stream.receive(in(20'000)).error().code;
    EXPECT_EQ(code, std::errc::not_connected);
    EXPECT_FALSE(stream.is_open());
    EXPECT_EQ(stream.send("x", in(20'000)).error().code, std::errc::not_connected);
    EXPECT_EQ(stream.receive(in(20'000)).error().code, std::errc::not_connected);
  }
}

}  // namespace
}  // namespace hf::kernel
