// Recorder: records what happened, outside the loop that heals: the journal, the counters, the snapshot of the host.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapters/journal/journal.h"
#include "core/report/blame.h"
#include "core/report/snapshot.h"
#include "kernel/files/host.h"
#include "services/guard/guard.h"
#include "services/guard/inside_view.h"
#include "services/guard/survey.h"

namespace hf::guard {

// Called from the recorder's thread; `log` also from others.
struct Callbacks {
  std::function<void(std::shared_ptr<const report::Snapshot>)> snapshot;
  std::function<void(const report::BlameRecordPtr&)> record;
  std::function<void(const std::string& decision, bool is_warning)> log;  // "healed container=web device=…"
  std::function<std::shared_ptr<const report::CpuStatus>()> cpus;         // of the CPU manager; empty: it is off
};

class Recorder {
 public:
  Recorder(const kernel::Host& host, Callbacks callbacks, report::Snapshot first);

  void open_journal(const std::string& directory, std::uint64_t size);

  void record(const VisitResult& result);
  void record(const ShieldReport& report);
  void adopt(const SurveyPtr& survey);
  void set_view(InsideView view);
  void fail_survey(const std::string& why);
  // `began_at`: when the diagnosis began, in nanoseconds of CLOCK_MONOTONIC. What happened since is newer.
  void set_findings(std::vector<report::Finding> findings, std::uint64_t began_at);
  void count(const std::map<std::string, std::uint64_t>& events);

  // Writes records that have waited long enough for more changes by the same writer, and publishes the snapshot if it
  // has changed.
  void tick(std::uint64_t now);
  void flush();

 private:
  struct Pending {
    report::BlameRecord record;
    std::vector<std::string> texts;  // of the record
    std::uint64_t since = 0;
  };
  struct Score {
    std::uint64_t losses = 0;
    std::uint64_t heals = 0;
    std::int64_t last_loss_at = 0;
    bool is_hardened = false;
    bool is_locked = false;
    bool has_shield_state = false;
    bool is_shielded = false;
    std::string why_not_shielded;
    std::uint64_t held_opens = 0;
    std::vector<std::string> denied;  // paths, at the last visit
    std::uint64_t allowed_at = 0;  // nanoseconds of CLOCK_MONOTONIC: the last visit that left nothing denied; 0: none
  };

  void record_upkeep(const VisitResult& result);
  Pending& pending_for(const VisitResult& result);
  void note_access(Score& score, const VisitResult& result);
  void write(Pending& pending);
  void append(report::BlameRecord record);
  void keep(const report::BlameRecordPtr& record);
  void publish();
  [[nodiscard]] bool is_outdated(const report::Finding& finding) const;
  [[nodiscard]] bool has_ended(const report::Finding& finding) const;
  void drop_findings(const std::function<bool(const report::Finding&)>& is_wrong);
  void judge(report::ContainerStatus& status) const;
  [[nodiscard]] report::ContainerStatus status_of(const GuardedContainerPtr& shared) const;

  const kernel::Host& host_;
  Callbacks callbacks_;
  std::optional<journal::Journal> journal_;
  report::Snapshot snapshot_;
  std::map<std::string, Pending> pending_;                                   // by container
  std::map<std::string, Score> scores_;                                      // by container
  std::map<ContainerKey, Shared<std::vector<container::NodeState>>> views_;  // as last probed from inside
  std::multimap<std::string, const report::Finding*> findings_;              // of the snapshot, by container
  std::uint64_t diagnosed_at_ = 0;  // when the diagnosis behind them began, nanoseconds of CLOCK_MONOTONIC
  SurveyPtr survey_;
  std::set<std::string> surveyed_;  // the ids of its containers
  bool is_dirty_ = true;
  std::uint64_t published_at_ = 0;
  std::uint64_t trimmed_at_ = 0;
  std::uint64_t numbers_without_journal_ = 0;
};

}  // namespace hf::guard
