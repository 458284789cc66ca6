#include "services/guard/guard.h"

#include <algorithm>
#include <set>

#include "kernel/clock.h"
#include "kernel/file.h"
#include "kernel/observe.h"
#include "kernel/process.h"

namespace hf::guard {
namespace {

using container::Event;
using container::EventKind;

constexpr std::size_t kMostUsual = 16;   // sets of rules
constexpr std::uint64_t kMostKept = 64;  // uses of programs that are remembered

constexpr std::uint64_t kFinishPause = 500'000;        // 0.5 ms
constexpr std::uint64_t kLongestUpdate = 100'000'000;  // 100 ms

Event found_event(const kernel::CgroupsOfProcess& cgroups) {
  Event event;
  event.kind = EventKind::found_changed;
  event.at = kernel::monotonic_now();
  event.hierarchy = kernel::own_of(cgroups).hierarchy;
  event.cgroup = kernel::own_of(cgroups).id;
  return event;
}

std::string where_of(const kernel::CgroupsOfProcess& cgroups, container::Hierarchy hierarchy) {
  const std::optional<kernel::Cgroup>& first = hierarchy == container::Hierarchy::v1 ? cgroups.v1 : cgroups.v2;
  const std::optional<kernel::Cgroup>& other = hierarchy == container::Hierarchy::v1 ? cgroups.v2 : cgroups.v1;
  return first ? first->where : other ? other->where : std::string();
}

// The ids of a cgroup and of all above it but the root, which is everybody's.
void add_line(const std::optional<kernel::Cgroup>& cgroup, std::set<std::uint64_t>& ids) {
  if (!cgroup || cgroup->path.is_root()) {
    return;
  }
  ids.insert(cgroup->id.value);
  Result<kernel::Cgroup> above = kernel::open_parent(*cgroup);
  while (above) {
    ids.insert(above->id.value);
    if (above->path.is_root()) {
      return;
    }
    above = kernel::open_parent(*above);
  }
}

// Each v1 hierarchy counts its cgroups by itself: the one that is gone may be another's of the same number.
bool has_ended(const kernel::CgroupsOfProcess& cgroups, const Event& event) {
  const std::optional<kernel::Cgroup>& own = event.hierarchy == container::Hierarchy::v1 ? cgroups.v1 : cgroups.v2;
  if (!own || own->id != *event.cgroup) {
    return false;
  }
  return event.kind == EventKind::process_gone || !kernel::exists(own->directory.get(), "cgroup.procs");
}

bool same_rules(const container::Effective& a, const container::Effective& b) {
  return a.exact == b.exact && a.table == b.table;
}

}  // namespace

void Guard::add(const WardPtr& ward, const kernel::CgroupsPtr& cgroups) {
  const kernel::CgroupsKey key = kernel::key_of(*cgroups);
  Place& place = places_[key];
  const bool is_new = place.ward == nullptr;
  if (place.ward != ward) {
    place.habits.clear();  // it may be owed something else now
  }
  place.ward = ward;
  place.cgroups = cgroups;
  if (!is_new) {
    return;
  }
  watch_.add(cgroups, ward->handle->process());  // before the first look: what happens in between is told
  std::set<std::uint64_t> ids;
  add_line(cgroups->v1, ids);
  add_line(cgroups->v2, ids);
  for (const std::uint64_t id : ids) {
    by_cgroup_[id].push_back(key);
  }
  unprepared_.push_back(key);
  look_at(place, found_event(*cgroups));
}

// What its programs mean now, each by itself: a writer replaces one of them.
std::vector<container::Gate> Guard::own_gates(const Place& place) {
  Result<container::Observed> observed = kernel::observe(tools_.filters, *place.cgroups);
  if (!observed) {
    return {};
  }
  std::erase_if(observed->gates,
                [](const container::Gate& gate) { return !gate.is_own || !gate.program || !gate.meaning; });
  return std::move(observed->gates);
}

bool Guard::prepare_one() {
  if (unprepared_.empty()) {
    return false;
  }
  const auto place = places_.find(unprepared_.back());
  unprepared_.pop_back();
  if (place == places_.end() || !place->second.cgroups->v2 || place->second.ward->healed->nodes.empty()) {
    return true;
  }
  place->second.ready.clear();
  for (const device::Table& likely : place->second.ward->likely) {
    prepare(tools_, *place->second.ward, likely, place->second.ready);
  }
  for (const container::Gate& gate : own_gates(place->second)) {
    keep_ready(tools_, *gate.meaning, place->second.ready);
  }
  tools_.filters.trim(kMostKept);
  return true;
}

void Guard::forget(const kernel::CgroupsKey& key) {
  const auto place = places_.find(key);
  if (place == places_.end()) {
    return;
  }
  watch_.remove(*place->second.cgroups);
  places_.erase(place);
  for (auto entry = by_cgroup_.begin(); entry != by_cgroup_.end();) {
    std::erase(entry->second, key);
    entry = entry->second.empty() ? by_cgroup_.erase(entry) : std::next(entry);
  }
}

void Guard::adopt(const Survey& survey) {
  std::set<kernel::CgroupsKey> there;
  for (const WardPtr& ward : survey.wards) {
    for (const kernel::CgroupsPtr& cgroups : ward->cgroups()) {
      there.insert(kernel::key_of(*cgroups));
    }
  }
  std::vector<kernel::CgroupsKey> gone;
  for (const auto& [key, place] : places_) {
    if (!there.contains(key)) {
      gone.push_back(key);
    }
  }
  std::ranges::for_each(gone, [this](const kernel::CgroupsKey& key) { forget(key); });
  for (const WardPtr& ward : survey.wards) {
    for (const kernel::CgroupsPtr& cgroups : ward->cgroups()) {
      const auto known = places_.find(kernel::key_of(*cgroups));
      const bool changed = known != places_.end() && known->second.ward != ward;
      add(ward, cgroups);
      if (changed) {
        look_at(known->second, found_event(*cgroups));
      }
    }
  }
}

void Guard::handle(const Event& event) {
  if (!event.cgroup) {
    visit_all(event);
    return;
  }
  const auto keys = by_cgroup_.find(event.cgroup->value);
  if (keys == by_cgroup_.end()) {
    return;  // nobody's of ours
  }
  const std::vector<kernel::CgroupsKey> copy = keys->second;
  for (const kernel::CgroupsKey& key : copy) {
    if (event.kind == EventKind::cgroup_gone || event.kind == EventKind::process_gone) {
      if (has_ended(*places_.at(key).cgroups, event)) {
        forget(key);
      }
      continue;
    }
    look_at(places_.at(key), event);
  }
}

void Guard::visit_all(const Event& because) {
  for (auto& [key, place] : places_) {
    look_at(place, because);
  }
}

std::optional<std::uint64_t> Guard::visit_waiting(std::uint64_t now) {
  std::optional<std::uint64_t> next;
  for (auto& [key, place] : places_) {
    if (!place.waits_for) {
      continue;
    }
    if (std::max(place.patience.ready_at(), place.looks_again_at) <= now) {
      const std::unique_ptr<Event> event = std::move(place.waits_for);
      look_at(place, *event);
    }
    if (place.waits_for) {
      const std::uint64_t ready_at = std::max(place.patience.ready_at(), place.looks_again_at);
      next = std::min(next.value_or(ready_at), ready_at);
    }
  }
  return next;
}

// runc 1.0.0-rc91 to rc95 read a v1 list again after writing it, and their update fails where it is not what they
// wrote.
bool Guard::is_finishing(Place& place, const Event& event, std::uint64_t now) {
  const bool reads_back = event.kind == EventKind::write && event.writer.name == "runc";
  if (reads_back && (!place.finishing || place.finishing->pid != event.writer.pid)) {
    place.finishing = Finishing{event.writer.pid, kernel::open_process(event.writer.pid), now + kLongestUpdate};
  }
  return place.finishing && now < place.finishing->until && kernel::is_running(place.finishing->process);
}

void Guard::look_at(Place& place, const Event& event) {
  const std::uint64_t started = kernel::monotonic_now();
  const bool waits = place.waits_for && started < place.patience.ready_at();
  if (waits) {
    return;  // its time will come
  }
  if (is_finishing(place, event, started)) {
    if (!place.waits_for) {
      place.waits_for = std::make_unique<Event>(event);
    }
    place.looks_again_at = started + kFinishPause;
    return;
  }
  if (std::exchange(place.looks_again_at, 0) != 0 && place.waits_for) {
    const std::unique_ptr<Event> finished = std::move(place.waits_for);
    look_at(place, *finished);  // whoever comes now, it was the one who has finished
    return;
  }
  Event known = event;
  Result<Visit> made = visit(tools_, *place.ward, *place.cgroups, Hands::may_heal, place.habits, [this, &known] {
    if (identify_) {
      identify_(known.writer);
    }
  });
  if (!made) {
    const bool is_gone =
        made.error().code == std::errc::no_such_file_or_directory || made.error().code == std::errc::no_such_device;
    if (!is_gone) {
      Happening happening;
      happening.ward = place.ward;
      happening.event = event;
      happening.cgroup = where_of(*place.cgroups, event.hierarchy);
      happening.action = report::Action::failed;
      happening.error = made.error().message;
      tell_(std::move(happening));
    }
    return;
  }
  const bool healed = made->healed_at != 0;
  if (healed && !place.patience.take(limits_, made->healed_at)) {
    place.waits_for = std::make_unique<Event>(event);
  }
  report(place, known, *made, started);
  tools_.filters.trim(kMostKept);
}

const Shared<container::Effective>& Guard::shared(container::Effective rules) {
  const auto same = std::ranges::find_if(usual_rules_, [&rules](const Shared<container::Effective>& usual) {
    return same_rules(*usual, rules) && usual->why == rules.why;
  });
  if (same != usual_rules_.end()) {
    return *same;
  }
  if (usual_rules_.size() >= kMostUsual) {
    usual_rules_.pop_front();
  }
  return usual_rules_.emplace_back(std::move(rules));
}

void Guard::report(Place& place, const Event& event, Visit& made, std::uint64_t started) {
  const bool healed = made.healed_at != 0;
  const bool is_lost = !made.left.is_none();
  const bool is_news = !place.rules || !same_rules(**place.rules, made.before) || healed || is_lost != place.is_lost;
  const bool is_first = !place.rules;
  if (!is_news || (is_first && made.drift.is_none())) {
    place.rules = shared(std::move(made.after));
    place.is_lost = is_lost;
    return;
  }
  Happening happening;
  happening.ward = place.ward;
  happening.event = event;
  happening.cgroup = where_of(*place.cgroups, event.hierarchy);
  happening.before = is_first ? made.before : **place.rules;
  happening.drift = std::move(made.drift);
  happening.left = made.left;
  happening.found = std::move(made.before);
  happening.refused = std::move(made.repair.refused);
  happening.steps = std::move(made.repair.plan.steps);
  happening.attempts = made.attempts;
  if (healed) {
    const std::uint64_t since = place.is_lost && place.lost_since != 0 ? place.lost_since : event.at;
    const bool is_since_known = event.kind != EventKind::found_changed && event.kind != EventKind::lost;
    if (is_since_known || (place.is_lost && place.lost_since != 0)) {
      happening.loss_ns = made.healed_at > since ? made.healed_at - since : 0;
    }
    happening.heal_ns = made.healed_at - started;
  }
  const bool nothing_missing = happening.drift.is_none();
  happening.action = healed && is_lost                          ? report::Action::failed
                     : healed && place.waits_for                ? report::Action::waits
                     : healed                                   ? report::Action::healed
                     : nothing_missing                          ? report::Action::none
                     : place.ward->mode < container::Mode::heal ? report::Action::observed
                                                                : report::Action::failed;
  place.lost_since = is_lost ? (place.is_lost ? place.lost_since : event.at) : 0;
  place.is_lost = is_lost;
  place.rules = shared(made.after);
  happening.after = std::move(made.after);
  tell_(std::move(happening));
}

}  // namespace hf::guard
