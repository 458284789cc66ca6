// Recorder: writes down what happened, away from the loop that heals: the journal, the counters, the picture of the
// node.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/journal/journal.h"
#include "core/report/blame.h"
#include "core/report/snapshot.h"
#include "kernel/host.h"
#include "services/guard/guard.h"
#include "services/guard/survey.h"
#include "services/guard/view.h"

namespace hf::guard {

// Who is told. Each may be called from the recorder's thread only.
struct Outlets {
  std::function<void(std::shared_ptr<const report::Snapshot>)> snapshot;
  std::function<void(const report::BlameRecord&)> record;
  std::function<void(const std::string& decision, bool is_warning)> log;  // "healed container=web device=…"
};

// What was done to a ward besides its rules: systemd was told, nodes were made, it was locked.
struct Deed {
  WardPtr ward;
  report::Action action = report::Action::hardened;
  std::vector<std::string> steps;
  std::string error;
};

class Recorder {
 public:
  Recorder(const kernel::Host& host, Outlets outlets, report::Snapshot first);

  void open_journal(const std::string& folder, std::uint64_t size);

  void record(const Happening& happening);
  void record(const Deed& deed);
  void record(const ShieldReport& report);
  void adopt(const SurveyPtr& survey);
  void see(View view);
  void fail_survey(const std::string& why);
  void set_findings(std::vector<report::Finding> findings);
  void count(const std::map<std::string, std::uint64_t>& events);

  // Records that wait for more of the same writer are written when they are old enough, the picture when it has
  // changed.
  void tick(std::uint64_t now);
  void flush();

 private:
  struct Pending {
    report::BlameRecord record;
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
  };

  void write(Pending& pending);
  void append(report::BlameRecord& record);
  void publish();
  [[nodiscard]] report::WardLine line_of(const WardPtr& shared) const;

  const kernel::Host& host_;
  Outlets outlets_;
  std::optional<journal::Journal> journal_;
  report::Snapshot picture_;
  std::map<std::string, Pending> pending_;                                  // by container
  std::map<std::string, Score> scores_;                                     // by container
  std::map<std::string, Shared<std::vector<container::NodeState>>> views_;  // by container, as last seen from inside
  std::multimap<std::string, std::string> codes_;                           // of the findings, by container
  SurveyPtr survey_;
  bool is_dirty_ = true;
  std::uint64_t published_at_ = 0;
  std::uint64_t trimmed_at_ = 0;
  std::uint64_t numbers_without_journal_ = 0;
};

}  // namespace hf::guard
