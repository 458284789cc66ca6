// Shield: one program with one map, attached to the parents of guarded containers' cgroups. It lets a container open
// what it is owed while the container's own rules refuse it. It stays in force when the daemon ends; a new daemon finds
// it through the attached programs.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/guard/shield.h"
#include "kernel/cgroup/bpf_api.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/filters.h"
#include "kernel/files/host.h"

namespace hf::kernel {

class Shield {
 public:
  // Finds what an earlier daemon has attached, or creates a new map. Fails where the kernel does not support shields.
  static Result<Shield> open(const Host& host, Filters& filters);

  // Ensures that the program is attached to this cgroup. A shield of another version is replaced without a gap.
  Result<void> attach(const Cgroup& parent);
  // Kernel: a program attached below one without ALLOW_MULTI switches that one off for all cgroups below without
  // programs of their own. A shield must not do that: this fails then, and detaches a shield that is already attached.
  Result<void> check_above(const Cgroup& parent);
  // Sets what is kept open for one cgroup. Entries that are not wanted are removed when this returns.
  Result<void> set(container::CgroupId cgroup, const Cgroup& parent, const std::vector<container::ShieldEntry>& wanted);
  Result<void> clear(container::CgroupId cgroup);
  Result<std::vector<container::ShieldEntry>> entries_of(container::CgroupId cgroup, const Cgroup& parent);

  // Removes what no guarded container needs any more: programs on other parents, entries of other cgroups.
  void keep_only(const std::set<container::CgroupId>& parents, const std::set<container::CgroupId>& cgroups);

 private:
  Shield(Filters& filters, ShieldTablePtr table) : filters_(&filters), table_(std::move(table)) {}

  Result<ProgramPtr> program_for(unsigned depth);
  bool detach_from(const Cgroup& parent);

  Filters* filters_;
  ShieldTablePtr table_;
  std::map<unsigned, ProgramPtr> programs_;  // by depth
  std::map<container::CgroupId, Cgroup> attached_;
};

// Every shield of this host, of any version, with the cgroup it is attached to.
struct FoundShield {
  Cgroup cgroup;
  ReadProgramPtr program;
};
Result<std::vector<FoundShield>> find_shields(const Host& host, Filters& filters);

// Detaches all shields. Returns the cgroups they were attached to.
Result<std::vector<std::string>> remove_shields(const Host& host, Filters& filters);

}  // namespace hf::kernel
