#include "services/cpus/nri_client.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/text.h"
#include "kernel/files/clock.h"
#include "kernel/net/socket.h"
#include "kernel/process/thread.h"

namespace hf::cpus {
namespace {

constexpr std::uint64_t kRetryPause = 2'000'000'000;  // 2 s
constexpr int kSendLimit = 1000;                      // ms: the engine reads at once, or is stuck

}  // namespace

NriClient::NriClient(config::NriSettings settings, nri::Handlers handlers, Log log)
    : settings_(std::move(settings)),
      handlers_(std::move(handlers)),
      log_(std::move(log)),
      thread_([this] { work(); }) {}

NriClient::~NriClient() {
  loop_.post([this] { stops_ = true; });
  thread_.join();
}

void NriClient::work() {
  kernel::name_thread("hf-nri");
  kernel::block_all_signals();
  while (!stops_) {
    if (const std::uint64_t now = kernel::monotonic_now(); now >= due_) {
      connect(now);
    }
    loop_.run_until(due_);
  }
  disconnect();
}

void NriClient::connect(std::uint64_t now) {
  due_ = now + kRetryPause;
  Result<kernel::Fd> socket = kernel::connect_unix(settings_.socket);
  if (!socket) {
    return end(socket.error().message);
  }
  if (const Result<void> watched = loop_.watch(socket->get(), [this] { read(); }); !watched) {
    return end(watched.error().message);
  }
  socket_ = *std::move(socket);
  session_.emplace("holdfast", settings_.index, handlers_);
  due_ = kernel::EventLoop::kNever;
  if (!send(session_->open())) {
    end("it does not read");
  }
}

void NriClient::disconnect() {
  if (socket_) {
    loop_.unwatch(socket_.get());
    socket_ = kernel::Fd();
  }
  session_.reset();
}

// An engine that is not there, or has no NRI, is logged once.
void NriClient::end(const std::string& why) {
  disconnect();
  due_ = kernel::monotonic_now() + kRetryPause;
  if (handlers_.lost) {
    handlers_.lost();
  }
  if (problem_ != why) {
    problem_ = why;
    log_("no-nri socket=" + quote(settings_.socket) + " error=" + quote(printable(why)), true);
  }
}

bool NriClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      bytes.remove_prefix(std::size_t(count));
      continue;
    }
    pollfd waiting{socket_.get(), POLLOUT, 0};
    if ((errno != EAGAIN && errno != EINTR) || ::poll(&waiting, 1, kSendLimit) <= 0) {
      return false;
    }
  }
  return true;
}

void NriClient::read() {
  std::array<char, 65536> buffer{};
  const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (count <= 0) {
    return end("the engine has closed the connection");
  }
  const Result<std::string> answers = session_->feed(std::string_view(buffer.data(), std::size_t(count)));
  if (!answers) {
    return end(answers.error().message);
  }
  if (session_->is_registered()) {
    problem_.clear();
  }
  if (!send(*answers)) {
    end("it does not read");
  }
}

}  // namespace hf::cpus
