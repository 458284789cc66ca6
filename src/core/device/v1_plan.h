// V1Plan: the fewest writes that change a cgroup v1 list from one meaning to another. None of them removes, even for a
// moment, access that the list has both before and after.
#pragma once

#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/device/rule.h"
#include "core/device/table.h"
#include "core/device/v1_list.h"

namespace hf::device {

using V1Plan = std::vector<CgroupWrite>;

Result<V1Plan> plan_v1_grant(const V1List& now, std::span<const Rule> rules);   // adds these rules
Result<V1Plan> plan_v1_revoke(const V1List& now, std::span<const Rule> rules);  // removes these rules
Result<V1Plan> plan_v1(const V1List& now, const V1List& wanted);                // reaches a list that means the same
Result<V1Plan> plan_v1(const V1List& now, const Table& wanted);                 // reaches a list that means this

// The same rules as cgroup v1 can express them: each kind on its own, ranges number by number. Fails where that would
// be too many.
Result<RuleSet> to_v1_rules(std::span<const Rule> rules);

V1List after(V1List list, const V1Plan& plan);

}  // namespace hf::device
