// Reporter: decides what the API server is told about pods and this cluster node, and when. It neither waits nor sends:
// its caller does, and gives the time and random numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "adapters/apiserver/client.h"
#include "adapters/apiserver/objects.h"
#include "core/notice/condition.h"
#include "core/notice/event_queue.h"
#include "core/notice/host_state.h"

namespace hf::cluster {

struct ReporterSettings {
  std::string node;
  bool writes_events = true;
  bool writes_condition = true;
  bool writes_taint = false;
  notice::EventLimits limits = {};
  std::uint64_t started = 0;  // nanoseconds of CLOCK_MONOTONIC
};

struct Moment {
  std::uint64_t now = 0;  // nanoseconds of CLOCK_MONOTONIC
  std::int64_t wall = 0;  // milliseconds since 1970
  double random = 0;      // from 0 to 1
};

class Reporter {
 public:
  struct Task {
    apiserver::Request request;
    std::function<void(const Result<apiserver::Response>&)> done;
  };

  explicit Reporter(ReporterSettings settings) : settings_(std::move(settings)), events_(settings_.limits) {}

  void report(const notice::PodEvent& event, const Moment& moment);
  void adopt(notice::HostState state, const Moment& moment);
  void confirm(const Moment& moment);  // the guard answers, and its state is the one before
  void miss_guard(const std::string& why, const Moment& moment);

  // What is to be sent now. One write of the condition, one of the taint and one event are under way at most.
  std::optional<Task> next(const Moment& moment);
  [[nodiscard]] std::uint64_t next_due() const;
  [[nodiscard]] std::uint64_t dropped() const { return events_.dropped(); }

 private:
  void want(notice::Condition condition, const Moment& moment);
  [[nodiscard]] std::uint64_t spread(const Moment& moment) const;
  void want_unknown(notice::Condition condition, const Moment& moment);
  Task write_condition(const Moment& moment);
  void take_condition(const Result<apiserver::Response>& answer);
  void finish_condition(const notice::Condition& condition, const Result<apiserver::Response>& answer);
  std::uint64_t pause_after(const Result<apiserver::Response>& answer);
  [[nodiscard]] std::uint64_t condition_due() const;
  [[nodiscard]] std::optional<bool> wanted_taint() const;  // absent: it stays as it is
  [[nodiscard]] std::uint64_t taint_due() const;
  void set_taint_due(std::uint64_t at);
  Task write_taint(const Moment& moment);
  void take_taints(const Result<apiserver::Response>& answer);
  void finish_taint(const Result<apiserver::Response>& answer, bool has_ours);
  static std::optional<notice::Outcome> outcome_of(const notice::EventWrite& write, unsigned status);

  ReporterSettings settings_;
  notice::EventQueue events_;
  notice::StateWatch watch_;
  std::optional<notice::HostState> state_;
  std::optional<std::uint64_t> unknown_since_;
  bool is_sending_ = false;  // an event

  std::optional<notice::Condition> wanted_;
  std::optional<notice::Condition> written_;
  std::optional<notice::Status> present_;  // on the server before the first write
  bool has_read_ = false;                  // present_
  std::optional<std::uint64_t> read_due_;
  std::optional<notice::Status> reported_;  // as last written, or refused for good
  bool is_writing_ = false;
  std::uint64_t condition_due_ = notice::EventQueue::kNever;
  std::uint64_t condition_written_at_ = 0;
  std::uint64_t missing_pause_ = 0;  // 0: the last answer knew the node

  std::optional<bool> has_taint_;  // as last seen on the server
  std::optional<apiserver::Taints> taints_;
  bool is_tainting_ = false;
  bool had_conflict_ = false;  // at the last change
  std::uint64_t taint_read_due_ = 0;
  std::uint64_t taint_change_due_ = 0;  // where it is not as it should be
  std::uint64_t taint_soonest_ = 0;     // of the next change
  std::uint64_t now_ = 0;               // of the last call
};

}  // namespace hf::cluster
