#include "services/cluster/reporter.h"

#include <algorithm>

namespace hf::cluster {
namespace {

using notice::Condition;
using notice::EventQueue;
using notice::EventWrite;
using notice::Outcome;
using notice::Status;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kLongestSpread = 10 * kSecond;  // many hosts may see the same change at once
constexpr std::uint64_t kShortest = 30 * kSecond;       // between two writes of the condition
constexpr std::uint64_t kHeartbeat = 300 * kSecond;     // as often as kubelet writes the status of its node
constexpr std::uint64_t kUnknownAfter = 60 * kSecond;   // a guard that restarts is not worth a write
constexpr std::int64_t kOldestState = 180'000;          // milliseconds

bool is_success(unsigned status) { return status >= 200 && status < 300; }

std::uint64_t part(std::uint64_t whole, double random) { return std::uint64_t(double(whole) * random); }

}  // namespace

void Reporter::report(const notice::PodEvent& event, const Moment& moment) {
  watch_.note(event, moment.now);
  if (settings_.writes_events) {
    events_.add(event, moment.now, moment.random);
  }
}

void Reporter::adopt(notice::HostState state, const Moment& moment) {
  state_ = std::move(state);
  confirm(moment);
}

void Reporter::confirm(const Moment& moment) {
  if (!state_) {
    return;
  }
  for (const notice::PodEvent& event : watch_.follow(*state_, moment.now)) {
    if (settings_.writes_events) {
      events_.add(event, moment.now, moment.random);
    }
  }
  std::string why_blind = state_->why_blind;
  if (why_blind.empty() && moment.wall - state_->at > kOldestState) {
    why_blind = "its last snapshot is " + std::to_string((moment.wall - state_->at) / 1000) + " s old";
  }
  const Condition condition = notice::condition_of(why_blind, watch_.lacking());
  if (condition.status == Status::unknown) {
    want_unknown(condition, moment);
    return;
  }
  unknown_since_.reset();
  want(condition, moment);
}

void Reporter::miss_guard(const std::string& why, const Moment& moment) {
  want_unknown(notice::condition_without_guard(why), moment);
}

void Reporter::want_unknown(Condition condition, const Moment& moment) {
  unknown_since_ = unknown_since_.value_or(moment.now);
  if (moment.now - *unknown_since_ >= kUnknownAfter) {
    want(std::move(condition), moment);
  }
}

// What the message says about a guard that is away may differ each time: only its reason counts.
void Reporter::want(Condition condition, const Moment& moment) {
  const bool is_same = wanted_ && (*wanted_ == condition ||
                                   (condition.status == Status::unknown && wanted_->reason == condition.reason));
  if (is_same) {
    return;
  }
  wanted_ = std::move(condition);
  if (written_ && *written_ == *wanted_) {
    condition_due_ = condition_written_at_ + kHeartbeat;
    return;
  }
  const std::uint64_t soonest = written_ ? condition_written_at_ + kShortest : 0;
  condition_due_ =
      std::max(moment.now + part(std::min(kLongestSpread, settings_.limits.spread), moment.random), soonest);
}

std::optional<Reporter::Task> Reporter::next(const Moment& moment) {
  now_ = moment.now;
  if (settings_.writes_condition && moment.now >= condition_due_) {
    return write_condition(moment);
  }
  if (wants_taint_change() && moment.now >= taint_due_) {
    return write_taint(moment);
  }
  const std::optional<EventWrite> write = events_.next(moment.now);
  if (!write) {
    return std::nullopt;
  }
  Task task;
  task.request = write->is_new ? apiserver::create_event(*write, settings_.node) : apiserver::change_event(*write);
  task.done = [this, write = *write](const Result<apiserver::Response>& answer) {
    // Without an outcome it is written again, when its time comes.
    if (const std::optional<Outcome> outcome = answer ? outcome_of(write, answer->status) : std::nullopt) {
      events_.settle(write, *outcome, now_);
    }
  };
  return task;
}

// 409 for a new event: it was created, and the answer got lost.
std::optional<Outcome> Reporter::outcome_of(const EventWrite& write, unsigned status) {
  if (is_success(status) || (write.is_new && status == 409)) {
    return Outcome::written;
  }
  if (!write.is_new && (status == 404 || status == 410)) {
    return Outcome::gone;
  }
  const bool is_for_now = status == 409 || status == 429 || status >= 500;
  return is_for_now ? std::nullopt : std::optional(Outcome::refused);
}

Reporter::Task Reporter::write_condition(const Moment& moment) {
  condition_written_at_ = moment.now;
  condition_due_ = moment.now + kHeartbeat - kHeartbeat / 10 + part(kHeartbeat / 5, moment.random);
  apiserver::ConditionWrite write{*wanted_, moment.wall, std::nullopt};
  if (!written_ || written_->status != wanted_->status) {
    write.changed_at = moment.wall;
  }
  return {apiserver::patch_condition(settings_.node, write),
          [this, condition = *wanted_](const Result<apiserver::Response>& answer) {
            if (answer && is_success(answer->status)) {
              written_ = condition;
            }
          }};
}

// While it is unknown whether containers lack something, the taint stays as it is.
bool Reporter::wants_taint_change() const {
  return settings_.writes_taint && wanted_ && wanted_->status != Status::unknown &&
         has_taint_ != (wanted_->status == Status::no);
}

Reporter::Task Reporter::write_taint(const Moment& moment) {
  taint_due_ = moment.now + kShortest;
  if (!taints_) {
    return {apiserver::read_node(settings_.node),
            [this](const Result<apiserver::Response>& answer) { take_taints(answer); }};
  }
  const bool has_ours = wanted_->status == Status::no;
  const apiserver::Taints before = *std::exchange(taints_, std::nullopt);
  return {apiserver::patch_taints(settings_.node, before, has_ours),
          [this, has_ours](const Result<apiserver::Response>& answer) { finish_taint(answer, has_ours); }};
}

void Reporter::take_taints(const Result<apiserver::Response>& answer) {
  if (!answer || !is_success(answer->status)) {
    return;
  }
  if (const Result<apiserver::Taints> taints = apiserver::parse_taints(answer->body)) {
    has_taint_ = taints->has_ours;
    taints_ = *taints;
    taint_due_ = 0;
  }
  if (!wants_taint_change()) {
    taints_.reset();
  }
}

// Another writer was faster (409): the list is read again.
void Reporter::finish_taint(const Result<apiserver::Response>& answer, bool has_ours) {
  if (answer && is_success(answer->status)) {
    has_taint_ = has_ours;
  }
  if (answer && (answer->status == 409 || is_success(answer->status))) {
    taint_due_ = 0;
  }
}

std::uint64_t Reporter::next_due() const {
  std::uint64_t due = events_.next_due();
  if (settings_.writes_condition) {
    due = std::min(due, condition_due_);
  }
  return wants_taint_change() ? std::min(due, taint_due_) : due;
}

}  // namespace hf::cluster
