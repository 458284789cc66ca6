// Shield: one program with one map, attached to the parents of guarded containers' cgroups. It lets a container open
// what it is owed at the moment in which the container's own rules refuse it. It stays in force without us: a new
// daemon finds it again through the programs that are attached.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/shield.h"
#include "kernel/bpf_api.h"
#include "kernel/cgroup.h"
#include "kernel/filters.h"
#include "kernel/host.h"

namespace hf::kernel {

class Shield {
 public:
  // Finds what an earlier daemon has attached, or creates a new map. Fails where this kernel has no shields.
  static Result<Shield> open(const Host& host, Filters& filters);

  // Makes sure that the program stands on this cgroup; a shield of another version is replaced without a gap.
  Result<void> attach(const Cgroup& parent);
  // Kernel: below a program that was attached without ALLOW_MULTI, any program switches that one off for all cgroups
  // that have none of their own. There must be no shield then; one that is there is taken off.
  Result<void> check_above(const Cgroup& parent);
  // What is kept open for one cgroup from now on; what is not wanted is gone when this returns.
  Result<void> set(container::CgroupId cgroup, const Cgroup& parent, const std::vector<container::ShieldEntry>& wanted);
  Result<void> clear(container::CgroupId cgroup);
  Result<std::vector<container::ShieldEntry>> entries_of(container::CgroupId cgroup, const Cgroup& parent);

  // Takes off what no guarded container needs any more: programs on other parents, entries of other cgroups.
  void keep_only(const std::set<container::CgroupId>& parents, const std::set<container::CgroupId>& cgroups);

 private:
  Shield(Filters& filters, ShieldTablePtr table) : filters_(&filters), table_(std::move(table)) {}

  Result<ProgramPtr> program_for(unsigned depth);
  bool take_off(const Cgroup& parent);

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

// Takes them all off. Returns the cgroups they were attached to.
Result<std::vector<std::string>> remove_shields(const Host& host, Filters& filters);

}  // namespace hf::kernel
