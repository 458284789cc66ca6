#include "kernel/cgroup/shield_table.h"

#include <algorithm>

namespace hf::kernel {

using container::CgroupId;
using container::ShieldEntry;

Result<ShieldTablePtr> ShieldTable::open(ShieldMapPtr map) {
  auto table = std::make_shared<ShieldTable>(std::move(map));
  for (const ShieldKey& key : TRY(table->map_->list())) {
    table->keys_[key.cgroup].insert(key);
  }
  return table;
}

Result<std::vector<ShieldEntry>> ShieldTable::entries_of(CgroupId cgroup, unsigned depth) {
  std::vector<ShieldEntry> entries;
  const auto known = keys_.find(cgroup);
  if (known == keys_.end()) {
    return entries;
  }
  for (auto key = known->second.begin(); key != known->second.end();) {
    const std::optional<ShieldEntry> entry = TRY(map_->read(*key));
    if (entry && key->depth == depth) {
      entries.push_back(*entry);
    }
    key = entry ? std::next(key) : known->second.erase(key);
  }
  if (known->second.empty()) {
    keys_.erase(known);
  }
  return entries;
}

Result<void> ShieldTable::set(CgroupId cgroup, unsigned depth, const std::vector<ShieldEntry>& wanted) {
  const auto is_wanted = [&](const ShieldKey& key) {
    return key.depth == depth && std::ranges::find(wanted, key.device, &ShieldEntry::device) != wanted.end();
  };
  std::set<ShieldKey>& keys = keys_[cgroup];
  for (auto key = keys.begin(); key != keys.end();) {
    if (is_wanted(*key)) {
      ++key;
      continue;
    }
    TRY(map_->remove(*key));
    key = keys.erase(key);
  }
  for (const ShieldEntry& entry : wanted) {
    const ShieldKey key{cgroup, depth, entry.device};
    const std::optional<ShieldEntry> present = TRY(map_->read(key));
    if (!present || present->access != entry.access) {
      TRY(map_->put(key, entry.access));
    }
    keys.insert(key);
  }
  if (keys.empty()) {
    keys_.erase(cgroup);
  }
  return {};
}

Result<void> ShieldTable::remove(const ShieldKey& key) {
  TRY(map_->remove(key));
  if (const auto known = keys_.find(key.cgroup); known != keys_.end()) {
    known->second.erase(key);
  }
  return {};
}

Result<void> ShieldTable::clear(CgroupId cgroup) { return set(cgroup, 0, {}); }

std::vector<CgroupId> ShieldTable::cgroups() const {
  std::vector<CgroupId> all;
  all.reserve(keys_.size());
  for (const auto& [cgroup, keys] : keys_) {
    all.push_back(cgroup);
  }
  return all;
}

}  // namespace hf::kernel
