// V1Plan: the writes that add rules to a cgroup v1 list or remove them from it. No write touches any other access.
#pragma once

#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/device/rule.h"
#include "core/device/v1_list.h"

namespace hf::device {

using V1Plan = std::vector<CgroupWrite>;

Result<V1Plan> plan_v1_grant(const V1List& now, std::span<const Rule> rules);   // adds these rules
Result<V1Plan> plan_v1_revoke(const V1List& now, std::span<const Rule> rules);  // removes these rules

}  // namespace hf::device
