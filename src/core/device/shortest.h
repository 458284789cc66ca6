// Shortest: a table written as a list of rules, as short as a bounded search finds. For a large, crowded table a
// shorter list may exist.
#pragma once

#include "core/device/rule.h"
#include "core/device/table.h"

namespace hf::device {

// Exact for every request that the kernel can make (kAskable); combinations that no call asks for are left out.
RuleSet shortest_rules(const Table& table);

// "a *:* rwm"
RuleSet rule_for_everything();

}  // namespace hf::device
