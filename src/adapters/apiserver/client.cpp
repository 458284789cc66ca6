#include "adapters/apiserver/client.h"

#include <algorithm>
#include <atomic>

#include <fcntl.h>

#include "adapters/apiserver/connection.h"
#include "core/base/text.h"
#include "kernel/files/file.h"

namespace hf::apiserver {
namespace {

constexpr std::size_t kMostToken = 64 * 1024;
constexpr std::chrono::minutes kTokenLife{1};

// A token is part of a header: one line.
bool is_token(std::string_view text) {
  return std::ranges::all_of(text, [](char character) { return character > ' ' && character < 0x7f; });
}

}  // namespace

struct Client::State {
  std::atomic<bool> is_cancelled = false;
  std::unique_ptr<Connection> connection;
  std::string token;
  kernel::Clock::time_point token_due{};  // when it is read again
};

Client::Client(Access access) : access_(std::move(access)), state_(std::make_unique<State>()) {
  state_->token = access_.token;
}

Client::~Client() = default;

Result<void> Client::read_token(kernel::Clock::time_point now) {
  if (access_.token_file.empty() || now < state_->token_due) {
    return {};
  }
  const Result<std::string> text = kernel::read_start(AT_FDCWD, access_.token_file, kMostToken);
  if (text && is_token(trim(*text)) && !trim(*text).empty()) {
    state_->token = trim(*text);
    state_->token_due = now + kTokenLife;
    return {};
  }
  if (!state_->token.empty()) {
    return {};  // the one before may still be good; the next request reads again
  }
  return text ? fail(std::errc::invalid_argument, access_.token_file + " holds no token")
              : Result<void>(std::unexpected(text.error()));
}

Result<Response> Client::send(const Request& request, kernel::Clock::time_point deadline) {
  TRY(read_token(kernel::Clock::now()));
  if (!is_token(state_->token)) {
    return fail(std::errc::invalid_argument, "API server: the token is not one line of printable characters");
  }
  const bool was_open = state_->connection != nullptr;
  const kernel::Clock::time_point limit =
      std::min(deadline, kernel::Clock::time_point(std::chrono::nanoseconds(request.deadline)));
  Result<Response> response = send_once(request, limit);
  const bool is_stale = was_open && !response && response.error().code == std::errc::connection_aborted;
  if (is_stale) {  // the server closes connections that are not used
    response = send_once(request, limit);
  }
  if (response && response->status == 401) {
    state_->token_due = {};
  }
  return response;
}

Result<Response> Client::send_once(const Request& request, kernel::Clock::time_point deadline) {
  if (!state_->connection) {
    state_->connection = TRY(Connection::open(access_, state_->is_cancelled, deadline));
  }
  Result<Connection::Answer> answer = state_->connection->exchange(request, state_->token, deadline);
  if (!answer || !answer->is_kept) {
    state_->connection.reset();
  }
  if (!answer) {
    return std::unexpected(answer.error());
  }
  return std::move(answer->response);
}

void Client::cancel() { state_->is_cancelled = true; }

}  // namespace hf::apiserver
