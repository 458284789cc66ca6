// RuntimeOptions: the parts of the config file about the devices that containers get: runtime, cdi.
#pragma once

#include "adapters/config/config.h"
#include "adapters/config/yaml.h"

namespace hf::config {

// Each overwrites the settings that are given; absent keys change nothing.
Result<void> parse_runtime(const YAML::Node& node, RuntimeSettings& runtime);
Result<void> parse_cdi(const YAML::Node& node, CdiSettings& cdi);

}  // namespace hf::config
