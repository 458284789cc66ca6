// Shortest: a table written as a list of rules, as short as a bounded search finds; of large, crowded tables it may not
// be the very shortest.
#pragma once

#include "core/device/rule.h"
#include "core/device/table.h"

namespace hf::device {

// Exact for every question the kernel can ask (kAskable); combinations nobody asks are left out.
RuleSet shortest_rules(const Table& table);

// "a *:* rwm"
RuleSet rule_for_everything();

}  // namespace hf::device
