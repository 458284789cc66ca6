// Inspector: the thread for work that may block: probes from inside containers, device nodes, systemd's units, locks,
// and now and then a diagnosis of the whole host. Surveys do not wait for it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/report/finding.h"
#include "kernel/cgroup/bpf_api.h"
#include "kernel/cgroup/filters.h"
#include "kernel/files/host.h"
#include "kernel/net/event_loop.h"
#include "services/guard/diagnosis_schedule.h"
#include "services/guard/inside_view.h"
#include "services/guard/loop_thread.h"
#include "services/guard/survey.h"
#include "services/guard/upkeep.h"

namespace hf::guard {

class Inspector {
 public:
  // Called from the inspector's thread.
  struct Reports {
    std::function<void(InsideView)> view;
    std::function<void(VisitResult)> result;
    // With the time at which the diagnosis began, in nanoseconds of CLOCK_MONOTONIC.
    std::function<void(std::vector<report::Finding>, std::uint64_t)> findings;
    std::function<void()> reloaded;                                  // systemd has read its units again
    std::function<Result<std::vector<report::Finding>>()> diagnose;  // runs the doctor
  };

  Inspector(const kernel::Host& host, Reports reports);
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;

  void inspect(SurveyPtr survey, SurveyScope scope);
  // A visit has found a loss, or repaired one: the container's findings are out of date.
  void request_diagnosis();
  void request_end();  // begins no other change of a container
  // False: it still reads, which may block without a limit. A change of a container that has begun is always waited
  // for.
  bool has_ended_by(std::chrono::steady_clock::time_point deadline);

 private:
  void step();
  void act(const std::function<void()>& change);  // unless the end was requested
  void maintain_units_and_locks();
  void probe_next(std::uint64_t now);
  void diagnose_if_due(std::uint64_t now);
  void report_results(std::vector<VisitResult> results);
  void watch_bus();
  [[nodiscard]] std::uint64_t next_due() const;

  const kernel::Host& host_;
  Reports reports_;
  std::unique_ptr<kernel::Bpf> bpf_;
  std::unique_ptr<kernel::NodeProber> prober_;
  Upkeep upkeep_;
  ProbeSchedule schedule_;
  kernel::EventLoop loop_;
  SurveyPtr survey_;
  bool is_new_survey_ = false;
  std::atomic<bool> is_leaving_ = false;
  std::atomic<bool> is_acting_ = false;
  std::atomic<bool> is_requested_ = false;  // a visit has asked for a diagnosis that has not begun
  std::optional<kernel::Filters> filters_;  // while containers are due for a probe: what they share is read once
  DiagnosisSchedule diagnoses_;
  int bus_ = -1;  // the descriptor of systemd's bus that is watched
  LoopThread thread_;
};

}  // namespace hf::guard
