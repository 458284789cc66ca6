#include "services/plugin/guard_events.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernel/files/clock.h"
#include "kernel/net/socket.h"
#include "render/blame.h"

namespace hf::plugin {
namespace {

constexpr std::uint64_t kRetryPause = 5'000'000'000;  // 5 s
// All records that holdfastd still has, and not only those after the last one: without a journal its numbers begin
// again.
constexpr std::string_view kRequest = "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 0\r\n\r\n";
constexpr std::string_view kData = "data: ";

}  // namespace

void GuardEvents::work(std::uint64_t now) {
  if (now >= due_) {
    connect(now);
  }
}

void GuardEvents::connect(std::uint64_t now) {
  due_ = now + kRetryPause;
  Result<kernel::Fd> socket =
      path_.empty() ? fail(std::errc::no_such_file_or_directory, "no socket") : kernel::connect_unix(path_);
  if (!socket) {
    return;
  }
  (void)::fcntl(socket->get(), F_SETFL, ::fcntl(socket->get(), F_GETFL) | O_NONBLOCK);
  const bool is_sent =
      ::send(socket->get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) == ssize_t(kRequest.size());
  if (is_sent && loop_.watch(socket->get(), [this] { read(); })) {
    socket_ = *std::move(socket);
    due_ = kernel::EventLoop::kNever;
  }
}

void GuardEvents::disconnect() {
  if (socket_) {
    loop_.unwatch(socket_.get());
    socket_ = kernel::Fd();
  }
  unread_.clear();
}

void GuardEvents::read() {
  std::array<char, 16384> buffer{};
  const ssize_t count = ::read(socket_.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  unread_.append(buffer.data(), count > 0 ? std::size_t(count) : 0);
  read_lines();
  constexpr std::size_t kLongest = 2 * report::kMostLine;
  if (count <= 0 || unread_.size() > kLongest) {
    disconnect();
    due_ = kernel::monotonic_now() + kRetryPause;
  }
}

// The answer's head and the lengths of its chunks are lines as well, which are skipped.
void GuardEvents::read_lines() {
  std::size_t start = 0;
  for (std::size_t end = 0; (end = unread_.find('\n', start)) != std::string::npos; start = end + 1) {
    const std::string_view line = std::string_view(unread_).substr(start, end - start);
    if (line.starts_with(kData)) {
      const Result<report::BlameRecord> record = report::parse_blame_record(line.substr(kData.size()));
      if (record && is_new(*record)) {
        report_(*record);
      }
    }
  }
  unread_.erase(0, start);
}

// An earlier instance of this process has told the records from long before our start, but what waited when it ended is
// lost. A lower number is new where it is later than all others: the numbers have begun again.
bool GuardEvents::is_new(const report::BlameRecord& record) {
  // The time of our start by the current clock, which may have been set since.
  const std::int64_t now = kernel::wall_now();
  const std::int64_t started_at = now - std::int64_t((kernel::monotonic_now() - started_) / 1'000'000) - 1;
  const std::int64_t oldest = started_at - std::int64_t(history_) * 1000;
  const bool is_known = last_number_ == 0 ? record.at < oldest : record.number <= last_number_ && record.at <= last_at_;
  if (!is_known) {
    last_number_ = record.number;
    last_at_ = std::max(last_at_, record.at);
  }
  return !is_known;
}

}  // namespace hf::plugin
