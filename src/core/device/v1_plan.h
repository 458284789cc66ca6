// V1Plan: the fewest writes that take a cgroup v1 list from one meaning to another, none of them taking away, even for
// a moment, what it had before and keeps after.
#pragma once

#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/device/rule.h"
#include "core/device/table.h"
#include "core/device/v1_list.h"

namespace hf::device {

using V1Plan = std::vector<V1Write>;

Result<V1Plan> plan_v1_grant(const V1List& now, std::span<const Rule> rules);   // the list and these
Result<V1Plan> plan_v1_revoke(const V1List& now, std::span<const Rule> rules);  // the list without these
Result<V1Plan> plan_v1(const V1List& now, const V1List& wanted);                // a list that means the same as this
Result<V1Plan> plan_v1(const V1List& now, const Table& wanted);                 // a list that means this

// The same rules in v1's words: both kinds apart, ranges number by number. Fails where that would be too many.
Result<RuleSet> in_v1_words(std::span<const Rule> rules);

V1List after(V1List list, const V1Plan& plan);

}  // namespace hf::device
