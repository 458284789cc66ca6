#include "kernel/cgroup/sweep.h"

#include <algorithm>
#include <optional>

#include "kernel/files/clock.h"
#include "kernel/files/file.h"

namespace hf::kernel {

using container::Event;
using container::EventKind;
using container::Hierarchy;

namespace {

// The last program that was not attached before.
std::optional<container::ProgramId> newly_attached(const AttachedPrograms& before, const AttachedPrograms& now) {
  std::optional<container::ProgramId> found;
  for (const container::ProgramId id : now.ids) {
    if (std::ranges::find(before.ids, id) == before.ids.end()) {
      found = id;
    }
  }
  return found;
}

bool is_gone(const Error& error) {
  return error.code == std::errc::no_such_file_or_directory || error.code == std::errc::no_such_device;
}

}  // namespace

CgroupsKey key_of(const CgroupsOfProcess& cgroups) {
  return {cgroups.v1 ? cgroups.v1->id.value : 0, cgroups.v2 ? cgroups.v2->id.value : 0};
}

const Cgroup& own_cgroup_of(const CgroupsOfProcess& cgroups) {
  const bool by_v1 = cgroups.v1 && (!cgroups.v2 || !cgroups.v1->path.is_root());
  return by_v1 ? *cgroups.v1 : *cgroups.v2;
}

Sweep::State Sweep::read(const CgroupsOfProcess& cgroups) {
  State state;
  if (cgroups.v2) {
    const Result<AttachedPrograms> programs = bpf_.query(*cgroups.v2, Reach::own);
    state.is_gone = !programs && is_gone(programs.error());
    state.is_known = programs || state.is_gone;
    state.programs = programs.value_or(AttachedPrograms());
    state.effective = bpf_.query(*cgroups.v2, Reach::effective).value_or(AttachedPrograms()).ids;
  }
  if (cgroups.v1) {
    const Result<std::string> list = read_text(cgroups.v1->directory.get(), "devices.list");
    state.is_gone = state.is_gone || (!list && is_gone(list.error()));
    state.is_known = state.is_known && (list || state.is_gone);
    state.list = list.value_or("");
  }
  return state;
}

void Sweep::add(const CgroupsPtr& cgroups) {
  entries_.insert_or_assign(key_of(*cgroups), Entry{cgroups, read(*cgroups)});
}

void Sweep::remove(const CgroupsOfProcess& cgroups) { entries_.erase(key_of(cgroups)); }

void Sweep::collect_changes(std::vector<Event>& events) {
  for (auto& [key, entry] : entries_) {
    State now = read(*entry.cgroups);
    if (!now.is_known || entry.seen.is_gone) {
      continue;  // a failed read is not a change, and a removal is reported once
    }
    Event event;
    event.at = monotonic_now();
    event.kind = now.is_gone ? EventKind::cgroup_gone : EventKind::found_changed;
    if (now.programs.ids != entry.seen.programs.ids || now.programs.revision != entry.seen.programs.revision ||
        now.programs.attachment != entry.seen.programs.attachment || now.effective != entry.seen.effective ||
        (now.is_gone && entry.cgroups->v2)) {
      event.hierarchy = Hierarchy::v2;
      event.cgroup = entry.cgroups->v2->id;
      event.program = newly_attached(entry.seen.programs, now.programs);
      events.push_back(event);
      event.program.reset();
    }
    if (now.list != entry.seen.list || (now.is_gone && entry.cgroups->v1)) {
      event.hierarchy = Hierarchy::v1;
      event.cgroup = entry.cgroups->v1->id;
      events.push_back(event);
    }
    entry.seen = std::move(now);
  }
}

}  // namespace hf::kernel
