#include "services/guard/guard.h"

#include <algorithm>
#include <set>

#include "kernel/files/file.h"
#include "kernel/process/process.h"

namespace hf::guard {
namespace {

using container::Event;
using container::EventKind;

constexpr std::uint64_t kMostKept = 64;         // uses of programs that are remembered
constexpr std::size_t kMostUnknownEvents = 64;  // changes of cgroups that are not guarded, or not yet

constexpr std::uint64_t kFinishPause = 500'000;        // 0.5 ms
constexpr std::uint64_t kLongestUpdate = 100'000'000;  // 100 ms
constexpr std::uint64_t kCreationPause = 5'000'000;    // 5 ms
constexpr std::uint64_t kLongestCreation = 3'000'000'000;

// The ids of a cgroup and of all its ancestors.
void add_ids(const std::optional<kernel::Cgroup>& cgroup, std::set<std::uint64_t>& ids) {
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

// Cgroup ids are unique only within one v1 hierarchy: the cgroup that is gone may be another one with the same id.
bool has_ended(const kernel::CgroupsOfProcess& cgroups, const Event& event) {
  const std::optional<kernel::Cgroup>& own = event.hierarchy == container::Hierarchy::v1 ? cgroups.v1 : cgroups.v2;
  if (!own || own->id != *event.cgroup) {
    return false;
  }
  // The first process of a new container that is seen belongs to its runtime and ends soon.
  const Result<std::string> processes = kernel::read_start(own->directory.get(), "cgroup.procs", 64);
  return !processes || (event.kind == EventKind::process_gone && processes->empty());
}

bool is_gone(const Error& error) {
  return error.code == std::errc::no_such_file_or_directory || error.code == std::errc::no_such_device;
}

}  // namespace

// The event reported with a container's first visit: the last change of its cgroup, where one was seen before the
// container was known.
Event Guard::first_event(const kernel::CgroupsOfProcess& cgroups, std::optional<Event> seen) {
  const auto is_of = [&cgroups](const Event& event) { return cgroups.v2 && event.cgroup == cgroups.v2->id; };
  const auto earlier = std::ranges::find_if(unknown_cgroup_events_.rbegin(), unknown_cgroup_events_.rend(), is_of);
  if (!seen && earlier != unknown_cgroup_events_.rend()) {
    seen = *earlier;
  }
  std::erase_if(unknown_cgroup_events_, is_of);
  if (seen) {
    return *std::move(seen);
  }
  Event event;
  event.kind = EventKind::found_changed;
  event.at = callbacks_.clock();
  event.hierarchy = kernel::own_cgroup_of(cgroups).hierarchy;
  event.cgroup = kernel::own_cgroup_of(cgroups).id;
  return event;
}

// The writer is the process itself, or one that it started: a hook of a runtime.
bool Guard::works_for(const container::Writer& writer, container::Pid process) {
  return writer.pid == process ||
         std::ranges::find(writer.parents, process, &container::Ancestor::pid) != writer.parents.end();
}

void Guard::remember(const Event& event) {
  if (unknown_cgroup_events_.size() >= kMostUnknownEvents) {
    unknown_cgroup_events_.pop_front();
  }
  unknown_cgroup_events_.push_back(event);
}

std::shared_ptr<const kernel::Cgroup> Guard::shield_parent_of(const GuardedContainer& guarded) {
  for (const kernel::CgroupsPtr& cgroups : guarded.cgroups()) {
    if (!cgroups->v2 || cgroups->v2->path.is_root()) {
      continue;
    }
    Result<kernel::Cgroup> opened = kernel::open_parent(*cgroups->v2);
    if (!opened) {
      return nullptr;
    }
    std::weak_ptr<const kernel::Cgroup>& known = parents_[opened->id];
    std::shared_ptr<const kernel::Cgroup> parent = known.lock();
    if (!parent) {
      parent = std::make_shared<const kernel::Cgroup>(*std::move(opened));
      known = parent;
    }
    return parent;
  }
  return nullptr;
}

void Guard::add_cgroup(const GuardedContainerPtr& guarded, const kernel::CgroupsPtr& cgroups) {
  const kernel::CgroupsKey key = kernel::key_of(*cgroups);
  GuardedCgroup& guarded_cgroup = guarded_cgroups_[key];
  const GuardedContainerPtr before = std::exchange(guarded_cgroup.guarded, guarded);
  guarded_cgroup.cgroups = cgroups;
  if (before == guarded) {
    return;
  }
  if (before && before->handle == guarded->handle) {  // a survey has read it again, and it is owed the same
    surveyed_.insert(key);
    return;
  }
  if (before) {
    visit_again(guarded_cgroup);
    return;
  }
  guarded_cgroup.parent = shield_parent_of(*guarded);
  if (guarded->creator.value != 0) {
    guarded_cgroup.creation =
        Finishing{guarded->creator, kernel::open_process(guarded->creator), callbacks_.clock() + kLongestCreation};
  }
  // The watch starts before the first visit, so that no change in between is missed.
  std::optional<Event> seen = callbacks_.watch(cgroups, guarded->handle->process());
  std::set<std::uint64_t> ids;
  add_ids(cgroups->v1, ids);
  add_ids(cgroups->v2, ids);
  for (const std::uint64_t id : ids) {
    by_cgroup_[id].push_back(key);
  }
  visit_cgroup(guarded_cgroup, first_event(*cgroups, std::move(seen)));
}

void Guard::visit_again(GuardedCgroup& guarded_cgroup) {
  guarded_cgroup.shield = {};  // so that the shield is reported again, for the changed container
  visit_cgroup(guarded_cgroup, first_event(*guarded_cgroup.cgroups, std::nullopt));
}

bool Guard::visit_surveyed(std::uint64_t until) {
  while (!surveyed_.empty() && callbacks_.clock() < until) {
    const auto guarded_cgroup = guarded_cgroups_.find(surveyed_.extract(surveyed_.begin()).value());
    if (guarded_cgroup != guarded_cgroups_.end()) {
      visit_again(guarded_cgroup->second);
    }
  }
  return surveyed_.empty();
}

void Guard::add(const GuardedContainerPtr& guarded) {
  for (const kernel::CgroupsPtr& cgroups : guarded->cgroups()) {
    add_cgroup(guarded, cgroups);
  }
}

void Guard::add_newcomer(const GuardedContainerPtr& guarded) {
  const bool is_known = std::ranges::any_of(guarded->cgroups(), [this](const kernel::CgroupsPtr& cgroups) {
    return guarded_cgroups_.contains(kernel::key_of(*cgroups));
  });
  if (!is_known) {
    add(guarded);
  }
}

void Guard::forget(const kernel::CgroupsKey& key) {
  const auto guarded_cgroup = guarded_cgroups_.find(key);
  if (guarded_cgroup == guarded_cgroups_.end()) {
    return;
  }
  callbacks_.unwatch(*guarded_cgroup->second.cgroups);
  shielding_.forget(*guarded_cgroup->second.cgroups);
  guarded_cgroups_.erase(guarded_cgroup);
  for (auto entry = by_cgroup_.begin(); entry != by_cgroup_.end();) {
    std::erase(entry->second, key);
    entry = entry->second.empty() ? by_cgroup_.erase(entry) : std::next(entry);
  }
}

void Guard::adopt(const Survey& survey) {
  std::set<kernel::CgroupsKey> there;
  for (const GuardedContainerPtr& guarded : survey.guarded_containers) {
    for (const kernel::CgroupsPtr& cgroups : guarded->cgroups()) {
      there.insert(kernel::key_of(*cgroups));
    }
  }
  std::vector<kernel::CgroupsKey> gone;
  for (const auto& [key, guarded_cgroup] : guarded_cgroups_) {
    // One that was added while the survey was taken is not in it yet.
    if (!there.contains(key) && guarded_cgroup.guarded->first_seen_at <= survey.started_at) {
      gone.push_back(key);
    }
  }
  std::ranges::for_each(gone, [this](const kernel::CgroupsKey& key) { forget(key); });
  std::ranges::for_each(survey.guarded_containers, [this](const GuardedContainerPtr& guarded) { add(guarded); });
}

void Guard::release_unused() {
  std::set<container::CgroupId> parents;
  std::set<container::CgroupId> cgroups;
  for (const auto& [key, guarded_cgroup] : guarded_cgroups_) {
    if (guarded_cgroup.cgroups->v2) {
      cgroups.insert(guarded_cgroup.cgroups->v2->id);
    }
    if (guarded_cgroup.parent && guarded_cgroup.shield.is_attached) {
      parents.insert(guarded_cgroup.parent->id);
    }
  }
  shielding_.keep_only(parents, cgroups);
  std::erase_if(parents_, [](const auto& known) { return known.second.expired(); });
}

void Guard::act_on(const Event& event) {
  if (!event.cgroup) {
    visit_all(event);
    return;
  }
  const bool is_end = event.kind == EventKind::cgroup_gone || event.kind == EventKind::process_gone;
  const auto keys = by_cgroup_.find(event.cgroup->value);
  if (keys == by_cgroup_.end()) {
    if (!is_end) {
      remember(event);
    }
    return;
  }
  const std::vector<kernel::CgroupsKey> copy = keys->second;
  for (const kernel::CgroupsKey& key : copy) {
    if (!is_end) {
      visit_cgroup(guarded_cgroups_.at(key), event);
    } else if (has_ended(*guarded_cgroups_.at(key).cgroups, event)) {
      forget(key);
    }
  }
}

bool Guard::knows(container::Hierarchy hierarchy, container::CgroupId cgroup) const {
  const auto keys = by_cgroup_.find(cgroup.value);
  return keys != by_cgroup_.end() && std::ranges::any_of(keys->second, [&](const kernel::CgroupsKey& key) {
           return (hierarchy == container::Hierarchy::v1 ? key.first : key.second) == cgroup.value;
         });
}

void Guard::visit_all(const Event& because) {
  for (auto& [key, guarded_cgroup] : guarded_cgroups_) {
    visit_cgroup(guarded_cgroup, because);
  }
}

std::optional<std::uint64_t> Guard::visit_waiting(std::uint64_t now) {
  std::optional<std::uint64_t> next;
  for (auto& [key, guarded_cgroup] : guarded_cgroups_) {
    if (!guarded_cgroup.postponed_event) {
      continue;
    }
    if (std::max(guarded_cgroup.limiter.ready_at(), guarded_cgroup.revisit_at) <= now) {
      const std::unique_ptr<Event> event = std::move(guarded_cgroup.postponed_event);
      visit_cgroup(guarded_cgroup, *event);
    }
    if (guarded_cgroup.postponed_event) {
      const std::uint64_t ready_at = std::max(guarded_cgroup.limiter.ready_at(), guarded_cgroup.revisit_at);
      next = std::min(next.value_or(ready_at), ready_at);
    }
  }
  return next;
}

// runc 1.0.0-rc91 to rc95 read a v1 list back after writing it, and their update fails where it is not what they
// wrote.
bool Guard::is_finishing(GuardedCgroup& guarded_cgroup, const Event& event, std::uint64_t now) {
  const bool reads_back = event.kind == EventKind::write && event.writer.name == "runc";
  if (reads_back && (!guarded_cgroup.finishing || guarded_cgroup.finishing->pid != event.writer.pid)) {
    guarded_cgroup.finishing =
        Finishing{event.writer.pid, kernel::open_process(event.writer.pid), now + kLongestUpdate};
  }
  return guarded_cgroup.finishing && now < guarded_cgroup.finishing->until &&
         kernel::is_running(guarded_cgroup.finishing->process);
}

// A hook of the runtime gives a container its devices after its cgroup was created: what is missing until then is no
// loss.
bool Guard::is_being_created(GuardedCgroup& guarded_cgroup, const Event& event, std::uint64_t now) {
  const bool is_by_another =
      event.writer.is_known() && guarded_cgroup.creation && !works_for(event.writer, guarded_cgroup.creation->pid);
  if (guarded_cgroup.creation && (is_by_another || now >= guarded_cgroup.creation->until ||
                                  !kernel::is_running(guarded_cgroup.creation->process))) {
    guarded_cgroup.creation.reset();
    if (is_by_another) {  // this event is reported, not the postponed one of the runtime
      guarded_cgroup.postponed_event.reset();
      guarded_cgroup.revisit_at = 0;
    }
  }
  return guarded_cgroup.creation.has_value();
}

// A change of the container's own rules changes none of the shield's entries, and a writer that fights the guard
// changes only those rules.
bool Guard::is_about_own_rules(const GuardedCgroup& guarded_cgroup, const Event& event) {
  const std::optional<kernel::Cgroup>& own = guarded_cgroup.cgroups->v2;
  const bool is_outermost =
      own && guarded_cgroup.parent && depth_of(own->path) == depth_of(guarded_cgroup.parent->path) + 1;
  return event.kind != EventKind::found_changed &&
         (event.hierarchy == container::Hierarchy::v1 || (is_outermost && event.cgroup == own->id));
}

std::optional<Visit> Guard::settle(GuardedCgroup& guarded_cgroup) {
  const Site site{*guarded_cgroup.guarded, *guarded_cgroup.cgroups, guarded_cgroup.parent.get()};
  Result<Visit> made = visit(filters_, &shielding_, site, VisitMode::observe_only, callbacks_.clock);
  if (!made) {
    return std::nullopt;
  }
  report_shield(guarded_cgroup, made->shield);
  return *std::move(made);
}

void Guard::visit_cgroup(GuardedCgroup& guarded_cgroup, const Event& event) {
  const std::uint64_t started = callbacks_.clock();
  if (guarded_cgroup.postponed_event && started < guarded_cgroup.limiter.ready_at()) {
    if (!is_about_own_rules(guarded_cgroup, event)) {
      settle(guarded_cgroup);
    }
    return;  // visit_waiting visits it later
  }
  if (is_being_created(guarded_cgroup, event, started)) {
    const std::optional<Visit> made = settle(guarded_cgroup);
    if (made && made->left.is_none()) {
      guarded_cgroup.rules = shared(made->after);  // it has what it is owed: whatever is missing later was lost
    }
    guarded_cgroup.postponed_event =
        guarded_cgroup.postponed_event ? std::move(guarded_cgroup.postponed_event) : std::make_unique<Event>(event);
    guarded_cgroup.revisit_at = started + kCreationPause;
    return;
  }
  if (is_finishing(guarded_cgroup, event, started)) {
    settle(guarded_cgroup);
    if (!guarded_cgroup.postponed_event) {
      guarded_cgroup.postponed_event = std::make_unique<Event>(event);
    }
    guarded_cgroup.revisit_at = started + kFinishPause;
    return;
  }
  if (std::exchange(guarded_cgroup.revisit_at, 0) != 0 && guarded_cgroup.postponed_event) {
    const std::unique_ptr<Event> finished = std::move(guarded_cgroup.postponed_event);
    visit_cgroup(guarded_cgroup,
                 *finished);  // the change was made by the writer that has finished, whatever the event is now
    return;
  }
  const Site site{*guarded_cgroup.guarded, *guarded_cgroup.cgroups, guarded_cgroup.parent.get()};
  Result<Visit> made = visit(filters_, &shielding_, site, VisitMode::may_heal, callbacks_.clock);
  if (!made) {
    if (!is_gone(made.error())) {
      settle(guarded_cgroup);
      report_failure(guarded_cgroup, event, made.error());
    }
    return;
  }
  if (made->healed_at != 0 && !guarded_cgroup.limiter.take(limits_, made->healed_at)) {
    guarded_cgroup.postponed_event = std::make_unique<Event>(event);
  }
  report(guarded_cgroup, event, *made, started);
  filters_.trim(kMostKept);
}

}  // namespace hf::guard
