// Sweep: the rules of many cgroups, compared with how they were at the last look. Needs nothing but reading.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/container/event.h"
#include "kernel/bpf_api.h"
#include "kernel/cgroup.h"

namespace hf::kernel {

// Owned by whoever watches a container, and by the sweep as long as it is on its list.
using CgroupsPtr = std::shared_ptr<const CgroupsOfProcess>;

// What a container's cgroups are: the v1 one and the v2 one, 0 where there is none. Many may share one of them, the
// root.
using CgroupsKey = std::pair<std::uint64_t, std::uint64_t>;
CgroupsKey key_of(const CgroupsOfProcess& cgroups);

// The one of the two that is the container's: root is everybody's.
const Cgroup& own_of(const CgroupsOfProcess& cgroups);

class Sweep {
 public:
  explicit Sweep(Bpf& bpf) : bpf_(bpf) {}

  void add(const CgroupsPtr& cgroups);
  void remove(const CgroupsOfProcess& cgroups);

  // An event for each that has changed since the last look, or since it was added. Who did it is not known.
  void look(std::vector<container::Event>& events);

 private:
  struct State {
    AttachedPrograms programs;
    std::vector<container::ProgramId> effective;  // with those of the cgroups above
    std::string list;                             // devices.list
    bool is_gone = false;
    bool is_known = true;  // nothing but the cgroup's end kept us from reading
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
