#include "services/cluster/reporter.h"

#include <algorithm>
#include <utility>

namespace hf::cluster {
namespace {

using notice::Condition;
using notice::EventQueue;
using notice::EventWrite;
using notice::Outcome;
using notice::Status;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kLongestSpread = 10 * kSecond;  // many hosts may see the same change at once
constexpr std::uint64_t kShortest = 30 * kSecond;       // between two writes of the condition, or of the taint
constexpr std::uint64_t kHeartbeat = 300 * kSecond;     // as often as kubelet writes the status of its node
constexpr std::uint64_t kUnknownAfter = 60 * kSecond;   // a guard that restarts is not worth a write
constexpr std::int64_t kOldestState = 180'000;          // milliseconds

bool is_success(unsigned status) { return status >= 200 && status < 300; }

bool is_for_now(unsigned status) { return status == 409 || status == 429 || status >= 500; }

// What a cluster node is told will be refused again. 404 is for now: kubelet registers the node later.
bool is_refused(const Result<apiserver::Response>& answer) {
  return answer && !is_success(answer->status) && answer->status != 404 && !is_for_now(answer->status);
}

std::uint64_t part(std::uint64_t whole, double random) { return std::uint64_t(double(whole) * random); }

std::uint64_t heartbeat(double random) { return kHeartbeat - kHeartbeat / 10 + part(kHeartbeat / 5, random); }

}  // namespace

// What a record from before the start says about now is older than the guard's first state.
void Reporter::report(const notice::PodEvent& event, const Moment& moment) {
  if (event.at >= moment.wall - std::int64_t((moment.now - settings_.started) / 1'000'000)) {
    watch_.note(event, moment.now);
  }
  if (settings_.writes_events) {
    events_.add(event, moment.now, moment.random);
  }
}

void Reporter::adopt(notice::HostState state, const Moment& moment) {
  state_ = std::move(state);
  confirm(moment);
}

void Reporter::confirm(const Moment& moment) {
  now_ = moment.now;
  if (!state_) {
    return;
  }
  std::string why_blind = state_->why_blind;
  if (why_blind.empty() && moment.wall - state_->at > kOldestState) {
    why_blind = "its last snapshot is " + std::to_string((moment.wall - state_->at) / 1000) + " s old";
  }
  if (!why_blind.empty()) {
    want_unknown(notice::condition_of(why_blind, {}), moment);
    return;
  }
  unknown_since_.reset();
  for (const notice::PodEvent& event : watch_.follow(*state_, moment.now)) {
    if (settings_.writes_events) {
      events_.add(event, moment.now, moment.random);
    }
  }
  if (watch_.is_settled(moment.now) || !watch_.lacking().empty()) {
    want(notice::condition_of("", watch_.lacking()), moment);
  }
}

void Reporter::miss_guard(const std::string& why, const Moment& moment) {
  now_ = moment.now;
  want_unknown(notice::condition_without_guard(why), moment);
}

std::uint64_t Reporter::spread(const Moment& moment) const {
  return part(std::min(kLongestSpread, settings_.limits.spread), moment.random);
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
  if (is_writing_ && has_read_) {
    return;  // finish_condition() compares what was written
  }
  if (written_ && *written_ == *wanted_) {
    condition_due_ = condition_written_at_ + kHeartbeat;
    return;
  }
  const std::uint64_t soonest = written_ ? condition_written_at_ + kShortest : 0;
  condition_due_ = std::max(moment.now + spread(moment), soonest);
}

std::optional<Reporter::Task> Reporter::next(const Moment& moment) {
  now_ = moment.now;
  read_due_ = read_due_.value_or(moment.now + spread(moment));
  if (moment.now >= condition_due()) {
    return write_condition(moment);
  }
  if (moment.now >= taint_due()) {
    return write_taint(moment);
  }
  const std::optional<EventWrite> write = is_sending_ ? std::nullopt : events_.next(moment.now);
  if (!write) {
    return std::nullopt;
  }
  is_sending_ = true;
  Task task;
  task.request = write->is_new ? apiserver::create_event(*write, settings_.node) : apiserver::change_event(*write);
  task.done = [this, write = *write](const Result<apiserver::Response>& answer) {
    is_sending_ = false;
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
  return is_for_now(status) ? std::nullopt : std::optional(Outcome::refused);
}

std::uint64_t Reporter::condition_due() const {
  if (!settings_.writes_condition || is_writing_) {
    return EventQueue::kNever;
  }
  return has_read_ ? condition_due_ : read_due_.value_or(0);
}

Reporter::Task Reporter::write_condition(const Moment& moment) {
  is_writing_ = true;
  if (!has_read_) {
    return {apiserver::read_condition(settings_.node),
            [this](const Result<apiserver::Response>& answer) { take_condition(answer); }};
  }
  condition_written_at_ = moment.now;
  condition_due_ = moment.now + heartbeat(moment.random);
  apiserver::ConditionWrite write{*wanted_, moment.wall, std::nullopt};
  if ((written_ ? written_->status : present_) != wanted_->status) {
    write.changed_at = moment.wall;
  }
  return {
      apiserver::patch_condition(settings_.node, write),
      [this, condition = *wanted_](const Result<apiserver::Response>& answer) { finish_condition(condition, answer); }};
}

// Its last transition may have been in the time of an instance before this one.
void Reporter::take_condition(const Result<apiserver::Response>& answer) {
  is_writing_ = false;
  has_read_ = (answer && is_success(answer->status)) || is_refused(answer);
  present_ = has_read_ ? apiserver::find_status(answer->body) : std::nullopt;
  read_due_ = now_ + pause_after(answer);
}

// Without its node the server may be one of another cluster, or know this host by another name. Every answer is
// counted, because one that knows the node ends the longer pauses.
std::uint64_t Reporter::pause_after(const Result<apiserver::Response>& answer) {
  const bool is_missing = answer && answer->status == 404;
  missing_pause_ = is_missing ? std::clamp(missing_pause_ * 2, kShortest, kHeartbeat) : 0;
  return std::max(missing_pause_, kShortest);
}

// The write may have waited for minutes: what is wanted may be something else by now.
void Reporter::finish_condition(const Condition& condition, const Result<apiserver::Response>& answer) {
  is_writing_ = false;
  const std::uint64_t pause = pause_after(answer);
  const bool is_written = answer && is_success(answer->status);
  if (is_written) {
    written_ = condition;
    condition_written_at_ = now_;
  }
  if (is_written || is_refused(answer)) {
    reported_ = condition.status;
  }
  if (is_written ? written_ != wanted_ : !is_refused(answer)) {
    condition_due_ = now_ + pause;
  }
}

// A container that removes its own device nodes must not close the cluster node for others: only what no process in it
// can have caused counts. While it is unknown whether containers lack something, the taint stays as it is. It is
// removed once the condition says why, so that a restart of this process removes none too early.
std::optional<bool> Reporter::wanted_taint() const {
  if (!settings_.writes_taint || !wanted_ || wanted_->status == Status::unknown) {
    return std::nullopt;
  }
  const bool is_lost =
      wanted_->status == Status::no &&
      std::ranges::any_of(watch_.lacking(), [](const notice::ContainerState& it) { return it.is_hosts_fault; });
  const bool is_unsure = !watch_.is_settled(now_) ||
                         std::ranges::any_of(watch_.lacking(), [](const auto& it) { return it.verdict.empty(); });
  if (!is_lost && is_unsure) {
    return std::nullopt;
  }
  const bool is_early = wanted_->status == Status::yes && settings_.writes_condition && reported_ != Status::yes;
  return is_early ? std::nullopt : std::optional(is_lost);
}

std::uint64_t Reporter::taint_due() const {
  const std::optional<bool> wanted = wanted_taint();
  if (!wanted || is_tainting_) {
    return EventQueue::kNever;
  }
  return has_taint_.value_or(*wanted) == *wanted ? taint_read_due_ : taint_change_due_;
}

void Reporter::set_taint_due(std::uint64_t at) {
  taint_read_due_ = at;
  taint_change_due_ = at;
}

// Others may change the taints, and a right may be granted later: both are noticed at the next heartbeat.
Reporter::Task Reporter::write_taint(const Moment& moment) {
  is_tainting_ = true;
  set_taint_due(moment.now + heartbeat(moment.random));
  const bool has_ours = *wanted_taint();
  const std::optional<apiserver::Taints> before = std::exchange(taints_, std::nullopt);
  if (!before || before->has_ours == has_ours) {
    return {apiserver::read_node(settings_.node),
            [this](const Result<apiserver::Response>& answer) { take_taints(answer); }};
  }
  return {apiserver::patch_taints(settings_.node, *before, has_ours),
          [this, has_ours](const Result<apiserver::Response>& answer) { finish_taint(answer, has_ours); }};
}

void Reporter::take_taints(const Result<apiserver::Response>& answer) {
  is_tainting_ = false;
  const std::uint64_t pause = pause_after(answer);
  if (!answer || !is_success(answer->status)) {
    if (!is_refused(answer)) {
      set_taint_due(now_ + pause);
    }
    return;
  }
  if (const Result<apiserver::Taints> taints = apiserver::parse_taints(answer->body)) {
    has_taint_ = taints->has_ours;
    taint_change_due_ = taint_soonest_;
    if (wanted_taint().value_or(taints->has_ours) != taints->has_ours) {
      taints_ = *taints;
    }
  }
}

void Reporter::finish_taint(const Result<apiserver::Response>& answer, bool has_ours) {
  is_tainting_ = false;
  const std::uint64_t pause = pause_after(answer);
  const bool is_conflict = answer && answer->status == 409;
  const bool is_first = !std::exchange(had_conflict_, is_conflict);
  if (answer && is_success(answer->status)) {
    has_taint_ = has_ours;
    taint_soonest_ = now_ + kShortest;
    taint_change_due_ = taint_soonest_;
    return;
  }
  if (is_conflict && is_first) {
    set_taint_due(now_);  // another writer was faster: the list is read again
    return;
  }
  if (!is_refused(answer)) {
    set_taint_due(now_ + pause);
  }
}

std::uint64_t Reporter::next_due() const {
  return std::min({is_sending_ ? EventQueue::kNever : events_.next_due(), taint_due(), condition_due()});
}

}  // namespace hf::cluster
