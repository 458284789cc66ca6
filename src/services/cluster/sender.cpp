#include "services/cluster/sender.h"

#include <algorithm>
#include <utility>

#include "adapters/apiserver/objects.h"
#include "core/base/text.h"

namespace hf::cluster {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kShortestPause = kSecond / 10;
constexpr std::uint64_t kFirstPause = 2 * kSecond;
constexpr std::uint64_t kLongestPause = 60 * kSecond;
constexpr std::uint64_t kLongestRetryAfter = 300;  // seconds
constexpr unsigned kMostAttempts = 4;              // of a request that the server does not take: its caller comes again
constexpr std::size_t kMostSaid = 32;              // methods and resources that the log has named
constexpr unsigned kFailuresBeforeLog = 2;         // one alone is no news

bool is_success(unsigned status) { return status >= 200 && status < 300; }

std::string kind_of(const apiserver::Request& request) { return request.method + " " + resource_of(request.path); }

// A conflict is for now, and what is gone may have ended: an event, a claim, the namespace of a pod.
bool is_news(const apiserver::Request& request, unsigned status) {
  const std::string resource = resource_of(request.path);
  const bool may_be_gone = request.method == "DELETE" || resource == "events" || resource == "resourceclaims";
  return status != 409 && status != 410 && !(status == 404 && may_be_gone);
}

std::string why_of(const Result<apiserver::Response>& answer) {
  return answer ? std::to_string(answer->status) + " " + apiserver::message_of(*answer) : answer.error().message;
}

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

const apiserver::Request* Sender::next(std::uint64_t now) {
  drop_late(now);
  if (!sent_ && now >= due_) {
    // What has failed goes behind the others also when its pause is over.
    auto found = waiting_.end();
    for (auto one = waiting_.begin(); one != waiting_.end(); ++one) {
      if (one->due <= now && (found == waiting_.end() || one->attempts < found->attempts)) {
        found = one;
      }
    }
    if (found != waiting_.end()) {
      sent_ = std::move(*found);
      waiting_.erase(found);
    }
  }
  return sent_ ? &sent_->request : nullptr;
}

std::uint64_t Sender::next_due() const {
  if (sent_) {
    return kNever;
  }
  std::uint64_t due = kNever;
  for (const Waiting& one : waiting_) {
    due = std::min({due, std::max(due_, one.due), one.request.deadline});
  }
  return due;
}

void Sender::drop_late(std::uint64_t now) {
  const auto is_late = [now](const Waiting& one) { return one.request.deadline <= now; };
  for (auto late = std::ranges::find_if(waiting_, is_late); late != waiting_.end();
       late = std::ranges::find_if(waiting_, is_late)) {
    const Done dropped = std::move(late->done);
    waiting_.erase(late);
    dropped(fail(std::errc::timed_out, "the API server has not answered in time"));
  }
}

void Sender::settle(Result<apiserver::Response> answer, std::uint64_t now, double random) {
  if (!sent_) {
    return;
  }
  Waiting sent = *std::exchange(sent_, std::nullopt);
  if (!answer && now >= sent.request.deadline) {
    return sent.done(std::move(answer));  // it had less time than the server may take
  }
  const bool is_unanswered = !answer && apiserver::is_unanswered(answer.error());
  if (is_unanswered || (answer && (answer->status == 429 || answer->status >= 500))) {
    return postpone(std::move(sent), std::move(answer), now, random);
  }
  if (!answer || answer->status == 401) {  // as all others would be
    enter(answer ? State::refuses : State::away, why_of(answer));
    due_ = now + std::max(next_pause(random), kShortestPause);
    return waiting_.push_front(std::move(sent));
  }
  enter(State::answers, "");
  note_answer(sent.request);
  note_refusal(sent.request, *answer);
  pause_ = 0;
  due_ = 0;
  sent.done(std::move(answer));
}

// The server is there, but does not take this request for now: it may take others, of another namespace for example. A
// request without an answer may hang at an admission webhook that is called for its kind alone.
void Sender::postpone(Waiting sent, Result<apiserver::Response> answer, std::uint64_t now, double random) {
  ++sent.attempts;
  note_failure(sent, answer);
  // Retry-After is the same for all that were refused: some of them come later.
  const auto retry_after = answer ? answer->retry_after.value_or(std::chrono::seconds(0)) : std::chrono::seconds(0);
  const std::uint64_t wanted = std::min(std::uint64_t(retry_after.count()), kLongestRetryAfter) * kSecond;
  std::uint64_t pause = next_pause(random);
  pause = wanted == 0 ? pause : wanted + std::uint64_t(double(std::max(wanted, pause_)) * random);
  due_ = now + std::clamp(pause, kShortestPause, kSecond);
  if (sent.attempts >= kMostAttempts) {
    return sent.done(std::move(answer));
  }
  sent.due = now + std::max(pause, kShortestPause);
  waiting_.push_back(std::move(sent));
}

// Any part of a limit that doubles: hosts that failed together do not come back together.
std::uint64_t Sender::next_pause(double random) {
  pause_ = std::clamp(pause_ * 2, kFirstPause, kLongestPause);
  return std::uint64_t(double(pause_) * random);
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

// What is refused stays refused until an administrator changes something: it is said once, and again when it changes.
void Sender::note_refusal(const apiserver::Request& request, const apiserver::Response& response) {
  const std::string what = kind_of(request);
  if (is_success(response.status)) {
    refused_.erase(what);
    return;
  }
  const bool is_new = refused_.size() < kMostSaid || refused_.contains(what);
  if (!is_news(request, response.status) || !is_new ||
      std::exchange(refused_[what], response.status) == response.status) {
    return;
  }
  const std::string why = response.status == 403 ? apiserver::message_of(response) : why_of(response);
  log_((response.status == 403 ? "api-forbidden request=" : "api-rejects request=") + quote(what) +
           " error=" + quote(why),
       true);
}

void Sender::note_failure(const Waiting& sent, const Result<apiserver::Response>& answer) {
  const bool is_busy = answer && answer->status == 429;
  if (is_busy || sent.attempts < kFailuresBeforeLog || failing_.size() >= kMostSaid) {
    return;
  }
  const std::string what = kind_of(sent.request);
  if (failing_.insert(what).second) {
    log_("api-fails request=" + quote(what) + " error=" + quote(why_of(answer)), true);
  }
}

void Sender::note_answer(const apiserver::Request& request) {
  const std::string what = kind_of(request);
  if (failing_.erase(what) > 0) {
    log_("api-answers request=" + quote(what), false);
  }
}

void Sender::drop_all() {
  if (sent_) {
    waiting_.push_front(*std::exchange(sent_, std::nullopt));
  }
  for (const Waiting& one : std::exchange(waiting_, {})) {
    one.done(fail(std::errc::operation_canceled, "the API thread ends"));
  }
}

}  // namespace hf::cluster
