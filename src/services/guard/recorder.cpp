#include "services/guard/recorder.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <string_view>

#include "core/base/add_missing.h"
#include "core/base/text.h"
#include "core/device/compare.h"
#include "core/report/verdict.h"
#include "host/writer.h"
#include "kernel/files/clock.h"

namespace hf::guard {
namespace {

using container::NodeState;
using report::Action;
using report::BlameRecord;

constexpr std::uint64_t kMergeTime = 50'000'000;  // what one writer does within 50 ms is one record
constexpr std::uint64_t kSnapshotPause = 250'000'000;
constexpr std::uint64_t kOldestSnapshot = 30'000'000'000;
constexpr std::size_t kMostRecords = 500;       // in the snapshot
constexpr std::int64_t kKeptHistory = 600'000;  // milliseconds: a survey may miss a container for a moment

std::vector<std::string> texts_of(const device::RuleSet& rules) {
  std::vector<std::string> texts;
  texts.reserve(rules.size());
  for (const device::Rule& rule : rules) {
    texts.push_back(to_string(rule));
  }
  return texts;
}

BlameRecord record_of(const GuardedContainer& guarded) {
  BlameRecord record;
  record.at = kernel::wall_now();
  record.id = guarded.container.id.value;
  record.container = title_of(guarded.container);
  record.engine = guarded.container.engine.value_or("");
  record.name_space = name_space_of(guarded.container);
  if (guarded.container.pod && guarded.container.pod->is_named_by_cri && !guarded.container.pod->uid.empty()) {
    record.pod = guarded.container.pod;
  }
  return record;
}

bool is_same_writer(const BlameRecord& record, const container::Event& event) {
  return event.writer.is_known() && record.writer.pid == event.writer.pid;
}

// The later of two actions, where the later one did anything.
Action last_action(Action before, Action now) { return now == Action::none ? before : now; }

void sum(const std::optional<std::uint64_t>& more, std::optional<std::uint64_t>& all) {
  if (more) {
    all = all.value_or(0) + *more;
  }
}

bool is_usable(const std::vector<NodeState>& nodes, const std::string& path) {
  const auto found = std::ranges::find_if(nodes, [&path](const NodeState& node) { return node.owed->path == path; });
  return found != nodes.end() && !found->is_inaccessible();
}

bool is_disproved_by(const std::vector<NodeState>& nodes, const report::Finding& finding) {
  return report::is_about_access(finding.code) && !finding.nodes.empty() &&
         std::ranges::all_of(finding.nodes, [&nodes](const std::string& path) { return is_usable(nodes, path); });
}

std::string log_line_of(const BlameRecord& record) {
  std::string line =
      to_string(record.action) + " container=" + quote(record.container) + " id=" + record.id.substr(0, 12);
  line += " event=" + quote(to_string(record.kind)) + " writer=" + quote(title_of(record.writer));
  line += record.devices.empty() ? "" : " devices=" + join(record.devices, ",");
  line += record.loss_ns ? " loss_us=" + std::to_string(*record.loss_ns / 1000) : "";
  line += record.heal_ns ? " heal_us=" + std::to_string(*record.heal_ns / 1000) : "";
  line += record.is_shielded ? " held_opens=" + std::to_string(record.held_opens) : "";
  line += record.error.empty() ? "" : " error=" + quote(record.error);
  return line;
}

void add_to(BlameRecord& record, const VisitResult& result) {
  record.program = result.event.program ? result.event.program : record.program;
  add_missing(record.devices, result.drift.denied);
  add_missing(record.steps, result.steps);
  record.error = join(result.refused, "; ");
  record.error += (record.error.empty() || result.error.empty() ? "" : "; ") + result.error;
  record.action = last_action(record.action, result.action);
  sum(result.loss_ns, record.loss_ns);
  sum(result.heal_ns, record.heal_ns);
  const device::Difference change = device::compare(result.before.table, result.found.table);
  add_missing(record.lost, texts_of(change.only_left));
  add_missing(record.gained, texts_of(change.only_right));
  record.doubt = result.before.exact ? result.found.why : result.before.why;
}

}  // namespace

Recorder::Recorder(const kernel::Host& host, Callbacks callbacks, report::Snapshot first)
    : host_(host), callbacks_(std::move(callbacks)), snapshot_(std::move(first)) {
  snapshot_.is_blind = true;
  snapshot_.why_blind = "the host was not surveyed yet";
}

void Recorder::open_journal(const std::string& directory, std::uint64_t size) {
  Result<journal::Journal> opened = journal::Journal::open(host_, directory, size);
  if (!opened) {
    callbacks_.log("no-journal directory=" + directory + " error=" + quote(opened.error().message), true);
    return;
  }
  journal_.emplace(*std::move(opened));
  for (BlameRecord& record : journal_->take_history()) {
    keep(std::make_shared<const BlameRecord>(std::move(record)));
  }
}

void Recorder::record(const VisitResult& result) {
  if (result.is_upkeep) {
    record_upkeep(result);
    return;
  }
  Pending& pending = pending_for(result);
  BlameRecord& record = pending.record;
  const bool had_devices = !record.devices.empty();
  add_to(record, result);
  if (!result.event.text.empty()) {
    add_missing(pending.texts, {result.event.text});
    record.text = join(pending.texts, "; ");
  }
  Score& score = scores_[record.id];
  note_access(score, result);
  if (result.drift.denied.empty()) {
    return;
  }
  record.held_opens += result.held_opens;
  record.is_shielded = result.is_shielded && (record.is_shielded || !had_devices);
  is_dirty_ = true;
  if (!result.drift.is_loss() || result.action == Action::completed) {
    return;
  }
  ++score.losses;
  score.heals += result.action == Action::healed ? 1 : 0;
  score.last_loss_at = kernel::wall_now();
}

// What the same writer did a moment before is the same record.
Recorder::Pending& Recorder::pending_for(const VisitResult& result) {
  const GuardedContainer& guarded = *result.guarded;
  Pending& pending = pending_[guarded.container.id.value];
  if (pending.since != 0 && !is_same_writer(pending.record, result.event)) {
    write(pending);
    pending = {};
  }
  if (pending.since == 0) {
    BlameRecord& record = pending.record;
    record = record_of(guarded);
    record.kind = result.event.kind;
    record.hierarchy = result.event.hierarchy;
    record.cgroup = result.cgroup;
    record.writer = result.event.writer;
    record.replaced = result.event.replaced;
    if (!result.is_identified) {
      host::identify(host_, record.writer);
    }
    pending.since = kernel::monotonic_now();
  }
  return pending;
}

void Recorder::note_access(Score& score, const VisitResult& result) {
  score.held_opens += result.held_opens;
  snapshot_.counters.held_opens += result.held_opens;
  if (!result.error.empty()) {
    return;
  }
  score.denied = result.left.is_loss() ? result.left.denied : std::vector<std::string>();
  if (score.denied.empty()) {
    score.allowed_at = kernel::monotonic_now();
    drop_findings([this](const report::Finding& finding) { return is_outdated(finding); });
  }
}

void Recorder::record(const ShieldReport& report) {
  Score& score = scores_[report.guarded->container.id.value];
  if (score.has_shield_state && score.is_shielded == report.state.is_on && score.why_not_shielded == report.state.why) {
    return;
  }
  score.has_shield_state = true;
  score.is_shielded = report.state.is_on;
  score.why_not_shielded = report.state.why;
  callbacks_.log((report.state.is_on ? "shielded container=" : "not-shielded container=") +
                     quote(title_of(report.guarded->container)) +
                     " id=" + report.guarded->container.id.value.substr(0, 12) +
                     (report.state.why.empty() ? "" : " why=" + quote(report.state.why)),
                 false);
  is_dirty_ = true;
}

void Recorder::record_upkeep(const VisitResult& result) {
  BlameRecord record = record_of(*result.guarded);
  record.kind = container::EventKind::found_changed;
  record.action = result.error.empty() ? result.action : Action::failed;
  record.steps = result.steps;
  record.error = result.error;
  record.cgroup = result.guarded->container.cgroup;
  Score& score = scores_[record.id];
  score.is_hardened = score.is_hardened || record.action == Action::hardened;
  score.is_locked = score.is_locked || record.action == Action::locked;
  ++snapshot_.counters.heals[{to_string(result.action), result.error.empty() ? "ok" : "failed"}];
  append(std::move(record));
}

void Recorder::write(Pending& pending) {
  BlameRecord& record = pending.record;
  report::Counters& counters = snapshot_.counters;
  if (record.is_loss()) {
    counters.count_loss(to_string(record.kind), record.writer);
  }
  if (!record.devices.empty()) {
    ++counters.heals[{to_string(record.action), record.action == Action::failed ? "failed" : "ok"}];
  }
  if (record.loss_ns) {
    counters.loss_duration.add(*record.loss_ns);
  }
  if (record.heal_ns) {
    counters.heal_duration.add(*record.heal_ns);
  }
  append(std::move(record));
}

void Recorder::append(BlameRecord record) {
  if (journal_) {
    const Result<void> written = journal_->append(record);
    if (!written) {
      callbacks_.log("journal-failed error=" + quote(written.error().message), true);
    }
  } else {
    record.number = ++numbers_without_journal_;
  }
  callbacks_.log(log_line_of(record), record.is_loss() || !record.error.empty());
  const auto shared = std::make_shared<const BlameRecord>(std::move(record));
  callbacks_.record(shared);
  keep(shared);
}

void Recorder::keep(const report::BlameRecordPtr& record) {
  add_to(snapshot_.histories, *record);
  snapshot_.records.push_back(record);
  if (snapshot_.records.size() > kMostRecords) {
    snapshot_.records.erase(snapshot_.records.begin(), snapshot_.records.end() - std::ptrdiff_t(kMostRecords));
  }
  is_dirty_ = true;
}

void Recorder::adopt(const SurveyPtr& survey) {
  survey_ = survey;
  snapshot_.is_blind = false;
  snapshot_.why_blind.clear();
  snapshot_.surveyed_at = survey->at;
  ++snapshot_.counters.surveys;
  snapshot_.counters.survey_ns = survey->took_ns;
  surveyed_.clear();
  for (const GuardedContainerPtr& guarded : survey->guarded_containers) {
    surveyed_.insert(guarded->container.id.value);
  }
  std::erase_if(scores_, [this](const auto& entry) { return !surveyed_.contains(entry.first); });
  for (const report::ContainerStatus& other : survey->others) {
    surveyed_.insert(other.container->id.value);
  }
  std::erase_if(snapshot_.histories, [&](const auto& entry) {
    return !surveyed_.contains(entry.first) && entry.second.at + kKeptHistory < survey->at;
  });
  drop_findings([this](const report::Finding& finding) { return has_ended(finding); });
  std::set<ContainerKey> seen;
  for (const GuardedContainerPtr& guarded : survey->guarded_containers) {
    seen.insert(key_of(*guarded));
  }
  std::erase_if(views_, [&seen](const auto& entry) { return !seen.contains(entry.first); });
  is_dirty_ = true;
}

// The inspector's thread probes and diagnoses, one after the other: a probe is newer than the findings before it.
void Recorder::set_view(InsideView view) {
  drop_findings([&view](const report::Finding& finding) {
    return finding.container == view.guarded->container.id.value && is_disproved_by(view.nodes, finding);
  });
  views_.insert_or_assign(key_of(*view.guarded), Shared(std::move(view.nodes)));
  is_dirty_ = true;
}

void Recorder::fail_survey(const std::string& why) {
  snapshot_.is_blind = true;
  snapshot_.why_blind = why;
  is_dirty_ = true;
  callbacks_.log("blind error=" + quote(why), true);
}

void Recorder::set_findings(std::vector<report::Finding> findings, std::uint64_t began_at) {
  diagnosed_at_ = began_at;
  std::erase_if(findings,
                [this](const report::Finding& finding) { return is_outdated(finding) || has_ended(finding); });
  snapshot_.findings = std::move(findings);
  findings_.clear();
  for (const report::Finding& finding : *snapshot_.findings) {
    findings_.emplace(finding.container, &finding);
  }
  is_dirty_ = true;
}

// A visit since the diagnosis has found, or made, the rules as they should be.
bool Recorder::is_outdated(const report::Finding& finding) const {
  const auto score = scores_.find(finding.container);
  return report::is_about_rules(finding.code) && score != scores_.end() && score->second.allowed_at > diagnosed_at_;
}

// A diagnosis that is newer than the survey may know of containers that the survey does not.
bool Recorder::has_ended(const report::Finding& finding) const {
  return survey_ && survey_->started_at >= diagnosed_at_ && !finding.container.empty() &&
         !surveyed_.contains(finding.container);
}

void Recorder::drop_findings(const std::function<bool(const report::Finding&)>& is_wrong) {
  if (std::ranges::any_of(*snapshot_.findings, is_wrong)) {
    std::vector<report::Finding> right = *snapshot_.findings;
    std::erase_if(right, is_wrong);
    set_findings(std::move(right), diagnosed_at_);
  }
}

void Recorder::count(const std::map<std::string, std::uint64_t>& events) {
  for (const auto& [kind, number] : events) {
    snapshot_.counters.events[kind] += number;
  }
}

void Recorder::tick(std::uint64_t now) {
  for (auto entry = pending_.begin(); entry != pending_.end();) {
    if (now - entry->second.since < kMergeTime) {
      ++entry;
      continue;
    }
    write(entry->second);
    entry = pending_.erase(entry);
  }
  const std::uint64_t age = now - published_at_;
  if ((is_dirty_ && age >= kSnapshotPause) || age >= kOldestSnapshot) {
    publish();
    published_at_ = now;
  }
}

void Recorder::flush() {
  for (auto& [id, pending] : pending_) {
    write(pending);
  }
  pending_.clear();
}

}  // namespace hf::guard
