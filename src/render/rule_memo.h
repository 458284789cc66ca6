// RuleMemo: a cache of the shortest rules of tables. Most containers of a host have the same few filters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

#include "core/device/rule.h"
#include "core/device/shortest.h"
#include "core/device/table.h"

namespace hf::report {

class RuleMemo {
 public:
  device::RuleSet rules_of(const device::Table& table) {
    const auto known = std::ranges::find(known_, table, &std::pair<device::Table, device::RuleSet>::first);
    if (known != known_.end()) {
      return known->second;
    }
    if (known_.size() == kMostKept) {
      known_.pop_front();
    }
    known_.emplace_back(table, device::shortest_rules(table));
    return known_.back().second;
  }

 private:
  static constexpr std::size_t kMostKept = 32;

  std::deque<std::pair<device::Table, device::RuleSet>> known_;
};

}  // namespace hf::report
