// GuardWords: the parts of the config file that the daemon reads: guard, web, journal.
#pragma once

#include "adapters/config/config.h"
#include "adapters/config/yaml.h"

namespace hf::config {

// Each lays what is given over what was there; absent keys change nothing.
Result<void> parse_guard(const YAML::Node& node, container::Policy& policy);
Result<void> parse_web(const YAML::Node& node, WebSettings& web);
Result<void> parse_journal(const YAML::Node& node, JournalSettings& journal);

}  // namespace hf::config
