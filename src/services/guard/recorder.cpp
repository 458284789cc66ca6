#include "services/guard/recorder.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <string_view>

#include <malloc.h>

#include "core/base/text.h"
#include "core/device/compare.h"
#include "kernel/clock.h"
#include "node/seat_view.h"
#include "node/writer.h"

namespace hf::guard {
namespace {

using container::NodeState;
using container::Trouble;
using report::Action;
using report::BlameRecord;

constexpr std::uint64_t kTogether = 50'000'000;  // what one writer does within 50 ms is one record
constexpr std::uint64_t kBetweenPictures = 250'000'000;
constexpr std::uint64_t kBetweenTrims = 5'000'000'000;
constexpr std::uint64_t kOldestPicture = 30'000'000'000;
constexpr std::size_t kMostRecords = 500;  // in the picture

std::vector<std::string> words_of(const device::RuleSet& rules) {
  std::vector<std::string> words;
  words.reserve(rules.size());
  for (const device::Rule& rule : rules) {
    words.push_back(to_string(rule));
  }
  return words;
}

BlameRecord record_of(const Ward& ward) {
  BlameRecord record;
  record.at = kernel::wall_now();
  record.id = ward.container.id.value;
  record.container = title_of(ward.container);
  record.engine = ward.container.engine;
  record.name_space = ward.container.pod ? ward.container.pod->name_space : ward.container.name_space;
  return record;
}

bool is_same_writer(const BlameRecord& record, const container::Event& event) {
  return event.writer.is_known() && record.writer.pid == event.writer.pid;
}

void add_new(const std::vector<std::string>& more, std::vector<std::string>& all) {
  for (const std::string& one : more) {
    if (std::ranges::find(all, one) == all.end()) {
      all.push_back(one);
    }
  }
}

// The worse or later of two things that were done.
Action joined(Action before, Action now) { return now == Action::none ? before : now; }

void sum(const std::optional<std::uint64_t>& more, std::optional<std::uint64_t>& all) {
  if (more) {
    all = all.value_or(0) + *more;
  }
}

// Does the last visit know better than the look from inside?
bool is_outdated(const NodeState& node, const std::vector<std::string>& denied_paths) {
  const bool denied = std::ranges::find(denied_paths, node.owed.path) != denied_paths.end();
  return node.diagnosis.trouble == (denied ? Trouble::none : Trouble::cgroup_denies);
}

// As they were seen from inside, with what the last visit knows better. Copied only where they differ: there are
// thousands of them, and pictures of them all the time.
Shared<std::vector<NodeState>> as_visited(const Shared<std::vector<NodeState>>& seen,
                                          const std::vector<std::string>& denied_paths) {
  if (std::ranges::none_of(*seen, [&](const NodeState& node) { return is_outdated(node, denied_paths); })) {
    return seen;
  }
  std::vector<NodeState> nodes = *seen;
  for (NodeState& node : nodes) {
    if (is_outdated(node, denied_paths)) {
      const bool denied = node.diagnosis.trouble == Trouble::none;
      node.diagnosis =
          denied ? container::Diagnosis{Trouble::cgroup_denies, "the device cgroup denies it"} : container::Diagnosis{};
    }
  }
  return nodes;
}

std::string line_for(const BlameRecord& record) {
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

}  // namespace

Recorder::Recorder(const kernel::Host& host, Outlets outlets, report::Snapshot first)
    : host_(host), outlets_(std::move(outlets)), picture_(std::move(first)) {
  picture_.is_blind = true;
  picture_.why_blind = "the node was not surveyed yet";
}

void Recorder::open_journal(const std::string& folder, std::uint64_t size) {
  Result<journal::Journal> opened = journal::Journal::open(host_, folder, size);
  if (!opened) {
    outlets_.log("no-journal folder=" + folder + " error=" + quote(opened.error().message), true);
    return;
  }
  journal_.emplace(*std::move(opened));
}

void Recorder::record(const Happening& happening) {
  const Ward& ward = *happening.ward;
  Pending& pending = pending_[ward.container.id.value];
  const bool is_first = pending.since == 0;
  if (!is_first && !is_same_writer(pending.record, happening.event)) {
    write(pending);
    pending = {};
  }
  BlameRecord& record = pending.record;
  if (pending.since == 0) {
    record = record_of(ward);
    record.kind = happening.event.kind;
    record.hierarchy = happening.event.hierarchy;
    record.cgroup = happening.cgroup;
    record.writer = happening.event.writer;
    record.replaced = happening.event.replaced;
    if (!happening.is_identified) {
      node::identify(host_, record.writer);
    }
    pending.since = kernel::monotonic_now();
  }
  record.program = happening.event.program ? happening.event.program : record.program;
  if (!happening.event.text.empty() && record.text.find(happening.event.text) == std::string::npos) {
    record.text += (record.text.empty() ? "" : "; ") + happening.event.text;
  }
  const bool had_devices = !record.devices.empty();
  add_new(happening.drift.denied, record.devices);
  for (const container::Step& step : happening.steps) {
    add_new({to_string(step)}, record.steps);
  }
  record.error = join(happening.refused, "; ");
  record.error += (record.error.empty() || happening.error.empty() ? "" : "; ") + happening.error;
  record.action = joined(record.action, happening.action);
  sum(happening.loss_ns, record.loss_ns);
  sum(happening.heal_ns, record.heal_ns);
  const device::Difference change = device::compare(happening.before.table, happening.found.table);
  add_new(words_of(change.only_left), record.lost);
  add_new(words_of(change.only_right), record.gained);
  record.doubt = happening.before.exact ? happening.found.why : happening.before.why;
  Score& score = scores_[record.id];
  score.denied = happening.left.is_loss() ? happening.left.denied : std::vector<std::string>();
  score.held_opens += happening.held_opens;
  picture_.counters.held_opens += happening.held_opens;
  if (happening.drift.denied.empty()) {
    return;
  }
  record.held_opens += happening.held_opens;
  record.is_shielded = happening.is_shielded && (record.is_shielded || !had_devices);
  is_dirty_ = true;
  if (!happening.drift.is_loss() || happening.action == Action::completed) {
    return;
  }
  ++score.losses;
  score.heals += happening.action == Action::healed ? 1 : 0;
  score.last_loss_at = kernel::wall_now();
}

void Recorder::record(const ShieldReport& report) {
  Score& score = scores_[report.ward->container.id.value];
  if (score.has_shield_state && score.is_shielded == report.state.is_on && score.why_not_shielded == report.state.why) {
    return;
  }
  score.has_shield_state = true;
  score.is_shielded = report.state.is_on;
  score.why_not_shielded = report.state.why;
  outlets_.log((report.state.is_on ? "shielded container=" : "not-shielded container=") +
                   quote(title_of(report.ward->container)) + " id=" + report.ward->container.id.value.substr(0, 12) +
                   (report.state.why.empty() ? "" : " why=" + quote(report.state.why)),
               false);
  is_dirty_ = true;
}

void Recorder::record(const Deed& deed) {
  BlameRecord record = record_of(*deed.ward);
  record.kind = container::EventKind::found_changed;
  record.action = deed.error.empty() ? deed.action : Action::failed;
  record.steps = deed.steps;
  record.error = deed.error;
  record.cgroup = deed.ward->container.cgroup;
  Score& score = scores_[record.id];
  score.is_hardened = score.is_hardened || record.action == Action::hardened;
  score.is_locked = score.is_locked || record.action == Action::locked;
  ++picture_.counters.heals[{to_string(deed.action), deed.error.empty() ? "ok" : "failed"}];
  append(record);
}

void Recorder::write(Pending& pending) {
  BlameRecord& record = pending.record;
  report::Counters& counters = picture_.counters;
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
  append(record);
}

void Recorder::append(BlameRecord& record) {
  if (journal_) {
    const Result<void> written = journal_->append(record);
    if (!written) {
      outlets_.log("journal-failed error=" + quote(written.error().message), true);
    }
  } else {
    record.number = ++numbers_without_journal_;
  }
  outlets_.log(line_for(record), record.is_loss() || !record.error.empty());
  outlets_.record(record);
  picture_.records.push_back(record);
  if (picture_.records.size() > kMostRecords) {
    picture_.records.erase(picture_.records.begin(), picture_.records.end() - std::ptrdiff_t(kMostRecords));
  }
  is_dirty_ = true;
}

void Recorder::adopt(const SurveyPtr& survey) {
  survey_ = survey;
  picture_.is_blind = false;
  picture_.why_blind.clear();
  picture_.surveyed_at = survey->at;
  ++picture_.counters.surveys;
  picture_.counters.survey_ns = survey->took_ns;
  std::set<std::string_view> there;
  for (const WardPtr& ward : survey->wards) {
    there.insert(ward->container.id.value);
  }
  std::erase_if(scores_, [&there](const auto& entry) { return !there.contains(entry.first); });
  std::set<std::string> seen;
  for (const WardPtr& ward : survey->wards) {
    seen.insert(key_of(*ward));
  }
  std::erase_if(views_, [&seen](const auto& entry) { return !seen.contains(entry.first); });
  is_dirty_ = true;
}

void Recorder::see(View view) {
  views_.insert_or_assign(key_of(*view.ward), Shared(std::move(view.nodes)));
  is_dirty_ = true;
}

void Recorder::fail_survey(const std::string& why) {
  picture_.is_blind = true;
  picture_.why_blind = why;
  is_dirty_ = true;
  outlets_.log("blind error=" + quote(why), true);
}

void Recorder::set_findings(std::vector<report::Finding> findings) {
  codes_.clear();
  for (const report::Finding& finding : findings) {
    codes_.emplace(finding.container, finding.code);
  }
  picture_.findings = std::move(findings);
  is_dirty_ = true;
}

void Recorder::count(const std::map<std::string, std::uint64_t>& events) {
  for (const auto& [kind, number] : events) {
    picture_.counters.events[kind] += number;
  }
}

void Recorder::tick(std::uint64_t now) {
  for (auto entry = pending_.begin(); entry != pending_.end();) {
    if (now - entry->second.since < kTogether) {
      ++entry;
      continue;
    }
    write(entry->second);
    entry = pending_.erase(entry);
  }
  const std::uint64_t age = now - published_at_;
  if ((is_dirty_ && age >= kBetweenPictures) || age >= kOldestPicture) {
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

report::WardLine Recorder::line_of(const WardPtr& shared) const {
  const Ward& ward = *shared;
  report::WardLine line;
  line.container = {shared, ward.container};
  line.owed = ward.owed;
  line.mode = to_string(ward.mode);
  const auto score = scores_.find(ward.container.id.value);
  const Score none;
  const Score& known = score == scores_.end() ? none : score->second;
  line.losses = known.losses;
  line.heals = known.heals;
  line.last_loss_at = known.last_loss_at;
  line.is_hardened = known.is_hardened;
  line.is_locked = known.is_locked;
  line.is_shielded = known.is_shielded;
  line.why_not_shielded = known.why_not_shielded;
  line.held_opens = known.held_opens;
  const auto view = views_.find(key_of(ward));
  line.nodes = view != views_.end() ? view->second : Shared(node::unseen_nodes(*ward.owed, "not looked at yet"));
  if (score != scores_.end()) {
    line.nodes = as_visited(line.nodes, known.denied);
  }
  bool at_risk = !ward.missing_in_unit.empty() && !known.is_hardened && !known.is_shielded;
  const auto [first, last] = codes_.equal_range(ward.container.id.value);
  for (const auto& [container, code] : std::ranges::subrange(first, last)) {
    line.codes.push_back(code);
    at_risk = at_risk || (code.starts_with("HF-2") && !known.is_hardened && !known.is_shielded);
  }
  line.state = state_of(*line.nodes, at_risk);
  return line;
}

void Recorder::publish() {
  auto snapshot = std::make_shared<report::Snapshot>(picture_);
  snapshot->at = kernel::wall_now();
  if (survey_) {
    snapshot->inventory = survey_->inventory;
    snapshot->online_cpus = survey_->online_cpus;
    snapshot->containers.reserve(survey_->wards.size() + survey_->others.size());
    for (const WardPtr& ward : survey_->wards) {
      snapshot->containers.push_back(line_of(ward));
    }
    snapshot->containers.insert(snapshot->containers.end(), survey_->others.begin(), survey_->others.end());
  }
  is_dirty_ = false;
  outlets_.snapshot(std::move(snapshot));
  const std::uint64_t now = kernel::monotonic_now();
  if (now - trimmed_at_ > kBetweenTrims) {  // the one before is gone now, and was as large
    trimmed_at_ = now;
    ::malloc_trim(0);
  }
}

}  // namespace hf::guard
