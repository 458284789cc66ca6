// RuntimeOptions: the parts of the config file about the devices that containers get: runtime, cdi.
#pragma once

#include "adapters/config/config.h"
#include "adapters/config/fields.h"

namespace hf::config {

// Each overwrites the settings that are given; absent keys change nothing.
Result<void> parse_runtime(Yaml node, RuntimeSettings& runtime);
Result<void> parse_cdi(Yaml node, CdiSettings& cdi);

}  // namespace hf::config
