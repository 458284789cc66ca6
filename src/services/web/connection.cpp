#include "services/web/connection.h"

#include <array>

#include "kernel/net/socket.h"

namespace hf::web {
namespace {

constexpr std::string_view kEndOfHead = "\r\n\r\n";

}  // namespace

void Connection::receive() {
  std::array<char, kMostHead> buffer{};
  const Result<std::size_t> count = kernel::receive(fd_, buffer);
  if (!count) {
    is_broken_ = count.error().code != std::errc::resource_unavailable_try_again;
    return;
  }
  has_ended_ = *count == 0;
  in_.append(buffer.data(), *count);
}

void Connection::discard_input() { in_.clear(); }

bool Connection::flush() {
  bool progress = false;
  while (!out_.empty()) {
    const std::string_view rest = std::string_view(*out_.front()).substr(sent_);
    const Result<std::size_t> count = rest.empty() ? Result<std::size_t>(0) : kernel::send_some(fd_, rest);
    if (!count) {
      is_broken_ = count.error().code != std::errc::resource_unavailable_try_again;
      return progress;
    }
    progress = true;
    sent_ += *count;
    pending_ -= *count;
    if (sent_ == out_.front()->size()) {
      out_.pop_front();
      sent_ = 0;
    }
  }
  return progress;
}

void Connection::put(Body bytes) {
  pending_ += bytes->size();
  out_.push_back(std::move(bytes));
}

std::optional<std::string> Connection::take_head() {
  const std::size_t end = in_.find(kEndOfHead);
  if (end > kMostHead) {  // also npos
    return std::nullopt;
  }
  std::string head = in_.substr(0, end);
  in_.erase(0, end + kEndOfHead.size());
  return head;
}

bool Connection::is_head_too_long() const { return in_.size() > kMostHead; }

kernel::Interest Connection::interest() const {
  // Nothing is read while a reply is being sent, so a client cannot send requests faster than it reads replies.
  if (phase == Phase::writing) {
    return kernel::Interest::write;
  }
  return pending_ > 0 ? kernel::Interest::both : kernel::Interest::read;
}

}  // namespace hf::web
