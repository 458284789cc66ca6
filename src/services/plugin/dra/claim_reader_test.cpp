#include "services/plugin/dra/claim_reader.h"

#include <future>
#include <optional>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "kernel/files/clock.h"
#include "kernel/files/fd.h"

namespace hf::plugin {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
const apiserver::Request kClaim{"GET", "/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims/gpus"};

// A server that takes connections and never answers.
class SilentServer {
 public:
  SilentServer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 16), 0);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = std::to_string(ntohs(address.sin_port));
  }

  [[nodiscard]] apiserver::Access access() const {
    apiserver::Access access;
    access.host = "127.0.0.1";
    access.port = port_;
    access.is_plain = true;
    return access;
  }

 private:
  kernel::Fd socket_;
  std::string port_;
};

// Waits in read_access until it is let go.
class ClaimReaderTest : public testing::Test {
 protected:
  void block() { (void)begun_.get_future().wait_for(std::chrono::seconds(10)); }
  void let_go() { go_.set_value(); }

  void request(std::uint64_t deadline = apiserver::kNoDeadline) {
    apiserver::Request request = kClaim;
    request.deadline = deadline;
    reader_->request(std::move(request), [this](const Result<apiserver::Response>& answer) {
      ASSERT_FALSE(answer);
      const std::scoped_lock lock(mutex_);
      codes_.push_back(answer.error().code);
      last_ = answer.error().message;
    });
  }

  std::vector<std::errc> codes() {
    const std::scoped_lock lock(mutex_);
    return codes_;
  }

  SilentServer server_;
  std::promise<void> begun_;
  std::promise<void> go_;
  std::mutex mutex_;
  std::vector<std::errc> codes_;
  std::string last_;
  bool has_begun_ = false;
  std::unique_ptr<ClaimReader> reader_ = std::make_unique<ClaimReader>([this]() -> Result<apiserver::Access> {
    if (!std::exchange(has_begun_, true)) {
      begun_.set_value();
      go_.get_future().wait();
    }
    return server_.access();
  });
};

TEST_F(ClaimReaderTest, TooManyClaimsAreRefusedAtOnce) {
  request();
  block();
  for (std::size_t i = 0; i < ClaimReader::kMostWaiting + 3; ++i) {
    request(kernel::monotonic_now());
  }
  EXPECT_EQ(codes(), std::vector<std::errc>(3, std::errc::no_buffer_space));
  let_go();
}

TEST_F(ClaimReaderTest, WhatIsLateIsNotSent) {
  request(kernel::monotonic_now() + kSecond / 2);  // the server does not answer in this time
  block();
  request(kernel::monotonic_now());
  let_go();
  for (int i = 0; i < 500 && codes().size() < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(codes(), (std::vector{std::errc::timed_out, std::errc::timed_out}));
  EXPECT_EQ(last_, "the API server was too slow with the claims before it");
}

TEST_F(ClaimReaderTest, EndsThoughItConnectsMeanwhile) {
  request();
  block();
  const std::uint64_t began = kernel::monotonic_now();
  std::thread ends([this] { reader_.reset(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the destructor has found no connection to cancel
  let_go();
  ends.join();
  EXPECT_LT(kernel::monotonic_now() - began, 5 * kSecond);
  EXPECT_EQ(codes(), std::vector{std::errc::operation_canceled});
}

}  // namespace
}  // namespace hf::plugin
