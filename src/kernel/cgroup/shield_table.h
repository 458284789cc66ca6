// ShieldTable: a shield's map with an index of its keys by cgroup.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/base/result.h"
#include "core/container/gate/gate.h"
#include "kernel/cgroup/shield_map.h"

namespace hf::kernel {

class ShieldTable {
 public:
  static Result<std::shared_ptr<ShieldTable>> open(ShieldMapPtr map);

  explicit ShieldTable(ShieldMapPtr map) : map_(std::move(map)) {}

  [[nodiscard]] const ShieldMap& map() const { return *map_; }

  // Read from the kernel, so entries that another process has removed are missing.
  Result<std::vector<container::ShieldEntry>> entries_of(container::CgroupId cgroup, unsigned depth);
  // Entries that are not wanted are removed before new ones are added.
  Result<void> set(container::CgroupId cgroup, unsigned depth, const std::vector<container::ShieldEntry>& wanted);
  Result<void> remove(const ShieldKey& key);
  Result<void> clear(container::CgroupId cgroup);
  [[nodiscard]] std::vector<container::CgroupId> cgroups() const;

 private:
  ShieldMapPtr map_;
  std::map<container::CgroupId, std::set<ShieldKey>> keys_;
};
// Owned by the readers and writers of entries.
using ShieldTablePtr = std::shared_ptr<ShieldTable>;

}  // namespace hf::kernel
