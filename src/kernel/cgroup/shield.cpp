#include "kernel/cgroup/shield.h"

#include <algorithm>

#include "kernel/files/file.h"

namespace hf::kernel {
namespace {

using container::CgroupId;
using container::ProgramId;
using container::ShieldEntry;

// The shields among the programs of one cgroup, without those that vanish meanwhile.
Result<std::vector<ReadProgramPtr>> shields_on(Filters& filters, const Cgroup& cgroup) {
  std::vector<ReadProgramPtr> shields;
  for (const ProgramId id : TRY(filters.bpf().query(cgroup, Reach::own)).ids) {
    Result<ReadProgramPtr> read = filters.read(id);
    if (read && is_shield(**read)) {
      shields.push_back(*std::move(read));
    }
  }
  return shields;
}

}  // namespace

Result<std::vector<FoundShield>> find_shields(const Host& host, Filters& filters) {
  std::vector<FoundShield> found;
  if (!host.v2) {
    return found;
  }
  const auto visit = [&](const Cgroup& cgroup) -> Result<void> {
    const Result<std::vector<ReadProgramPtr>> shields = shields_on(filters, cgroup);
    if (!shields) {
      return shields.error().code == std::errc::no_such_file_or_directory ? Result<void>()
                                                                          : std::unexpected(shields.error());
    }
    for (const ReadProgramPtr& shield : *shields) {
      found.push_back({duplicate(cgroup), shield});
    }
    return {};
  };
  TRY(walk(TRY(open_root(host, container::Hierarchy::v2)), visit));
  return found;
}

Result<std::vector<std::string>> remove_shields(const Host& host, Filters& filters) {
  std::vector<std::string> removed;
  for (const FoundShield& found : TRY(find_shields(host, filters))) {
    TRY(filters.bpf().detach(found.cgroup, found.program->program, 0));
    removed.push_back(found.cgroup.where);
  }
  return removed;
}

Result<Shield> Shield::open(const Host& host, Filters& filters) {
  if (!host.v2) {
    return fail(std::errc::not_supported, "there is no cgroup v2 here");
  }
  std::vector<FoundShield> found = TRY(find_shields(host, filters));
  const auto ours = std::ranges::find_if(found, [](const FoundShield& one) { return one.program->shield != nullptr; });
  Shield shield(filters, ours != found.end() ? ours->program->shield
                                             : TRY(filters.open_table(TRY(filters.bpf().create_shield_map()))));
  TRY(shield.program_for(1));  // fails where the kernel cannot load it
  for (FoundShield& one : found) {
    const CgroupId id = one.cgroup.id;
    shield.attached_.emplace(id, std::move(one.cgroup));
  }
  return shield;
}

Result<ProgramPtr> Shield::program_for(unsigned depth) {
  const auto known = programs_.find(depth);
  if (known != programs_.end()) {
    return known->second;
  }
  auto program = std::make_shared<const Program>(TRY(filters_->bpf().load_shield(table_->map(), depth)));
  return programs_.emplace(depth, std::move(program)).first->second;
}

Result<void> Shield::attach(const Cgroup& parent) {
  const unsigned depth = depth_of(parent.path);
  const std::vector<ReadProgramPtr> present = TRY(shields_on(*filters_, parent));
  const auto is_same = [&](const ReadProgramPtr& one) { return one->shield == table_ && one->depth == depth; };
  const auto same = std::ranges::find_if(present, is_same);
  for (const ReadProgramPtr& other : present) {  // of another version, or of a daemon that ran at the same time
    if (same != present.end() && other != *same) {
      TRY(filters_->bpf().detach(parent, other->program, 0));
    }
  }
  if (same == present.end()) {
    const ProgramPtr program = TRY(program_for(depth));
    const AttachMode mode =
        present.empty() ? AttachMode(AttachAlongside{}) : AttachMode(AttachReplacing{present.front()->program});
    TRY(filters_->bpf().attach(parent, *program, mode));
  }
  if (!attached_.contains(parent.id)) {
    attached_.emplace(parent.id, duplicate(parent));
  }
  return {};
}

Result<void> Shield::check_above(const Cgroup& parent) {
  std::optional<Cgroup> above;
  for (const Cgroup* level = &parent;; level = &*above) {
    const AttachedPrograms attached = TRY(filters_->bpf().query(*level, Reach::own));
    if (!attached.ids.empty() && attached.attachment != container::Attachment::several) {
      detach_from(parent);
      attached_.erase(parent.id);
      return fail(std::errc::operation_not_permitted,
                  level->where + " has a program that was attached so that no other may stand beside or below it");
    }
    if (level->path.is_root()) {
      return {};
    }
    above = TRY(open_parent(*level));
  }
}

bool Shield::detach_from(const Cgroup& parent) {
  const Result<std::vector<ReadProgramPtr>> shields = shields_on(*filters_, parent);
  bool done = shields.has_value();
  for (const ReadProgramPtr& shield : shields ? *shields : std::vector<ReadProgramPtr>()) {
    done = filters_->bpf().detach(parent, shield->program, 0) && done;
  }
  return done;
}

Result<void> Shield::set(CgroupId cgroup, const Cgroup& parent, const std::vector<ShieldEntry>& wanted) {
  return table_->set(cgroup, depth_of(parent.path), wanted);
}

Result<void> Shield::clear(CgroupId cgroup) { return table_->clear(cgroup); }

Result<std::vector<ShieldEntry>> Shield::entries_of(CgroupId cgroup, const Cgroup& parent) {
  return table_->entries_of(cgroup, depth_of(parent.path));
}

void Shield::keep_only(const std::set<CgroupId>& parents, const std::set<CgroupId>& cgroups) {
  for (const CgroupId cgroup : table_->cgroups()) {
    if (!cgroups.contains(cgroup)) {
      (void)table_->clear(cgroup);
    }
  }
  std::erase_if(attached_, [&](const auto& entry) {
    const auto& [id, parent] = entry;
    const bool is_gone = !exists(parent.directory.get(), "cgroup.procs");
    return !parents.contains(id) && (detach_from(parent) || is_gone);  // a failure is retried
  });
}

}  // namespace hf::kernel
