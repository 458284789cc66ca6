// ShieldTable: a shield's map with an index of its keys by cgroup.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/base/result.h"
#include "core/container/gate.h"
#include "kernel/shield_map.h"

namespace hf::kernel {

class ShieldTable {
 public:
  static Result<std::shared_ptr<ShieldTable>> open(ShieldMapPtr map);

  explicit ShieldTable(ShieldMapPtr map) : map_(std::move(map)) {}

  [[nodiscard]] const ShieldMap& map() const { return *map_; }

  // As the kernel has them now: an entry that another process has removed is gone.
  Result<std::vector<container::ShieldEntry>> entries_of(container::CgroupId cgroup, unsigned depth);
  // Makes them so: what is not wanted goes first.
  Result<void> set(container::CgroupId cgroup, unsigned depth, const std::vector<container::ShieldEntry>& wanted);
  Result<void> remove(const ShieldKey& key);
  Result<void> clear(container::CgroupId cgroup);
  [[nodiscard]] std::vector<container::CgroupId> cgroups() const;

 private:
  ShieldMapPtr map_;
  std::map<container::CgroupId, std::set<ShieldKey>> keys_;
};
// Owned by what reads or writes entries.
using ShieldTablePtr = std::shared_ptr<ShieldTable>;

}  // namespace hf::kernel
