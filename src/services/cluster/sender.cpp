#include "services/cluster/sender.h"

#include <algorithm>
#include <utility>

#include "adapters/apiserver/objects.h"
#include "core/base/text.h"

namespace hf::cluster {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kFirstPause = 2 * kSecond;
constexpr std::uint64_t kLongestPause = 60 * kSecond;
constexpr std::uint64_t kLongestRetryAfter = 300;  // seconds
constexpr unsigned kMostAttempts = 8;              // of a request that the server itself cannot handle
constexpr std::size_t kMostForbidden = 32;

bool is_success(unsigned status) { return status >= 200 && status < 300; }

}  // namespace

std::string resource_of(const std::string& path) {
  const std::string whole = path.substr(0, path.find('?'));
  std::vector<std::string_view> parts = split(std::string_view(whole), '/');
  std::erase(parts, std::string_view());
  const std::size_t head = !parts.empty() && parts[0] == "apis" ? 3 : 2;  // apis/GROUP/VERSION, api/VERSION
  parts.erase(parts.begin(), parts.begin() + std::ptrdiff_t(std::min(head, parts.size())));
  if (parts.size() > 2 && parts[0] == "namespaces") {
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  if (parts.empty()) {
    return whole;
  }
  return std::string(parts[0]) + (parts.size() > 2 ? "/" + std::string(parts[2]) : "");
}

void Sender::add(apiserver::Request request, Done done) {
  if (waiting_.size() >= kMostWaiting) {
    ++dropped_;
    const Done dropped = std::move(waiting_.front().done);
    waiting_.pop_front();
    dropped(fail(std::errc::no_buffer_space, "the API server is too slow: the oldest request was dropped"));
  }
  waiting_.push_back({std::move(request), std::move(done)});
}

const apiserver::Request* Sender::next(std::uint64_t now) const {
  return waiting_.empty() || now < due_ ? nullptr : &waiting_.front().request;
}

void Sender::settle(Result<apiserver::Response> answer, std::uint64_t now, double random) {
  if (waiting_.empty()) {
    return;
  }
  if (!answer) {
    enter(State::away, answer.error().message);
    retry(now, next_pause(random));
    return;
  }
  const unsigned status = answer->status;
  const auto said = [&] { return std::to_string(status) + " " + apiserver::message_of(*answer); };
  if (status == 401) {
    enter(State::refuses, said());
    retry(now, next_pause(random));
    return;
  }
  if (status != 429 && status < 500) {
    enter(State::answers, "");
    note_refusal(*answer);
    pause_ = 0;
    finish(std::move(answer));
    return;
  }
  if (status >= 500) {
    enter(State::away, said());
    if (++waiting_.front().attempts >= kMostAttempts) {
      finish(std::move(answer));  // others may do better
      due_ = now + next_pause(random);
      return;
    }
  }
  // Retry-After is the same for all who were refused: some of them come later.
  const std::uint64_t wanted =
      std::min(std::uint64_t(answer->retry_after.value_or(std::chrono::seconds(0)).count()), kLongestRetryAfter) *
      kSecond;
  const std::uint64_t pause = next_pause(random);
  retry(now, wanted == 0 ? pause : wanted + std::uint64_t(double(std::max(wanted, pause_)) * random));
}

// Any part of a limit that doubles: hosts that failed together do not come back together.
std::uint64_t Sender::next_pause(double random) {
  pause_ = std::clamp(pause_ * 2, kFirstPause, kLongestPause);
  return std::uint64_t(double(pause_) * random);
}

void Sender::retry(std::uint64_t now, std::uint64_t pause) { due_ = now + std::max(pause, kSecond / 10); }

void Sender::finish(Result<apiserver::Response> answer) {
  const Done done = std::move(waiting_.front().done);
  waiting_.pop_front();
  due_ = 0;
  done(std::move(answer));
}

void Sender::enter(State state, const std::string& why) {
  if (std::exchange(state_, state) == state) {
    return;
  }
  switch (state) {
    case State::unknown: return;
    case State::answers: log_("api-answers", false); return;
    case State::away: log_("api-away error=" + quote(why), true); return;
    case State::refuses: log_("api-refuses error=" + quote(why), true); return;
  }
}

// What is forbidden stays forbidden until an administrator allows it: it is said once.
void Sender::note_refusal(const apiserver::Response& response) {
  const apiserver::Request& request = waiting_.front().request;
  const std::string what = request.method + " " + resource_of(request.path);
  if (is_success(response.status)) {
    forbidden_.erase(what);
    return;
  }
  if (response.status == 403 && forbidden_.size() < kMostForbidden && forbidden_.insert(what).second) {
    log_("api-forbidden request=" + quote(what) + " error=" + quote(apiserver::message_of(response)), true);
  }
}

void Sender::drop_all() {
  while (!waiting_.empty()) {
    finish(fail(std::errc::operation_canceled, "the API thread ends"));
  }
}

}  // namespace hf::cluster
