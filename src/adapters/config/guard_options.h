// GuardOptions: the parts of the config file that the daemon reads: guard, web, journal.
#pragma once

#include <span>

#include "adapters/config/config.h"
#include "adapters/config/fields.h"

namespace hf::config {

// Each overwrites the settings that are given; absent keys change nothing.
Result<void> parse_guard(Yaml node, container::Policy& policy);
// Whether the rules name device classes that there are: a later file may define one.
Result<void> check_classes(std::span<const container::PolicyRule> rules, const device::DeviceClasses& classes);
Result<void> parse_web(Yaml node, WebSettings& web);
Result<void> parse_journal(Yaml node, JournalSettings& journal);

Result<void> parse_trust_rules(Yaml list, std::vector<container::TrustRule>& rules);

}  // namespace hf::config
