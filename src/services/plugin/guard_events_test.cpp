#include "services/plugin/guard_events.h"

#include <array>
#include <filesystem>
#include <memory>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel/net/socket.h"
#include "render/blame.h"

namespace hf::plugin {
namespace {

// holdfastd's side of the stream.
class GuardEventsTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<kernel::UnixListener> opened = kernel::UnixListener::open(path_);
    ASSERT_TRUE(opened) << opened.error().message;
    listener_ = std::make_unique<kernel::UnixListener>(*std::move(opened));
    events_ = std::make_unique<GuardEvents>(
        loop_, path_, kHistory, [this](const report::BlameRecord& record) { reported_.push_back(record.text); });
  }

  static constexpr std::uint32_t kHistory = 150;

  std::int64_t at(std::int64_t seconds) const { return started_at_ + 1000 * seconds; }

  static std::string line(std::uint64_t number, std::int64_t at, const std::string& text) {
    report::BlameRecord record;
    record.number = number;
    record.at = at;
    record.text = text;
    return "id: " + std::to_string(number) + "\ndata: " + render_line(record) + "\n\n";
  }

  // One connection, from its request to its end.
  void stream(const std::string& lines) {
    events_->work(events_->next_due());
    Result<kernel::Fd> client = kernel::accept_one(listener_->fd().get());
    ASSERT_TRUE(client) << client.error().message;
    std::array<char, 4096> request{};
    const ssize_t size = ::recv(client->get(), request.data(), request.size(), 0);
    ASSERT_GT(size, 0);
    EXPECT_NE(std::string(request.data(), std::size_t(size)).find("Last-Event-ID: 0\r\n"), std::string::npos);
    const std::string text = "HTTP/1.1 200 OK\r\n\r\nretry: 2000\n\nevent: lost\ndata: {\"lost\": 7}\n\n" + lines;
    ASSERT_EQ(::send(client->get(), text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
    *client = kernel::Fd();
    while (events_->next_due() == kernel::EventLoop::kNever) {
      loop_.run_until(kernel::EventLoop::kNever);
    }
  }

  std::string path_ =
      (std::filesystem::temp_directory_path() / ("hf-guard-events-" + std::to_string(::getpid()))).string();
  std::int64_t started_at_ = kernel::wall_now();
  std::unique_ptr<kernel::UnixListener> listener_;
  kernel::EventLoop loop_;
  std::vector<std::string> reported_;
  std::unique_ptr<GuardEvents> events_;
};

TEST_F(GuardEventsTest, ReportsEachRecordOnceThoughTheStreamIsRepeated) {
  const std::string before = line(4, at(-160), "before");
  const std::string first = before + line(5, at(10), "a") + line(6, at(9), "b");
  stream(first);
  EXPECT_EQ(reported_, (std::vector<std::string>{"a", "b"}));
  stream(first + line(7, at(12), "while the stream was down"));
  EXPECT_EQ(reported_, (std::vector<std::string>{"a", "b", "while the stream was down"}));
}

// What the instance before this one has not written yet; what it has written the API server has already.
TEST_F(GuardEventsTest, ReportsRecordsFromShortlyBeforeTheStart) {
  stream(line(3, at(-160), "a") + line(4, at(-140), "b") + line(5, at(-1), "c"));
  EXPECT_EQ(reported_, (std::vector<std::string>{"b", "c"}));
}

TEST_F(GuardEventsTest, ReportsRecordsWhoseNumbersBeginAgain) {
  stream(line(1, at(10), "a") + line(2, at(11), "b"));
  const std::string other = line(1, at(20), "c") + line(2, at(21), "d") + line(3, at(22), "e");
  stream(other);
  stream(other);
  EXPECT_EQ(reported_, (std::vector<std::string>{"a", "b", "c", "d", "e"}));
}

TEST_F(GuardEventsTest, FollowsNumbersThoughTheClockWasSetBack) {
  stream(line(1, at(10), "a") + line(2, at(-3600), "b"));
  EXPECT_EQ(reported_, (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace hf::plugin
