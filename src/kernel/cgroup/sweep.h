// Sweep: compares the rules of many cgroups with their last known state. It only reads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/container/guard/event.h"
#include "kernel/cgroup/bpf_api.h"
#include "kernel/cgroup/cgroup.h"

namespace hf::kernel {

// Owned by the watcher of a container, and by the sweep while it has an entry for it.
using CgroupsPtr = std::shared_ptr<const CgroupsOfProcess>;

// The ids of a container's v1 and v2 cgroups, 0 where there is none. One of them may be the root, which many containers
// share.
using CgroupsKey = std::pair<std::uint64_t, std::uint64_t>;
CgroupsKey key_of(const CgroupsOfProcess& cgroups);

// The one of the two that is the container's own; the root is shared by all.
const Cgroup& own_cgroup_of(const CgroupsOfProcess& cgroups);

class Sweep {
 public:
  explicit Sweep(Bpf& bpf) : bpf_(bpf) {}

  void add(const CgroupsPtr& cgroups);
  void remove(const CgroupsOfProcess& cgroups);

  // Adds an event for each cgroup that has changed since the last call, or since it was added. The writer is unknown.
  void collect_changes(std::vector<container::Event>& events);

 private:
  struct State {
    AttachedPrograms programs;
    std::vector<container::ProgramId> effective;  // including those of the cgroups above
    std::string list;                             // devices.list
    bool is_gone = false;
    bool is_known = true;  // false where reading failed although the cgroup still exists
  };
  struct Entry {
    CgroupsPtr cgroups;
    State seen;
  };
  State read(const CgroupsOfProcess& cgroups);

  Bpf& bpf_;
  std::map<CgroupsKey, Entry> entries_;
};

}  // namespace hf::kernel
