// RuntimeWords: the part of the config file that holdfast-runtime reads.
#pragma once

#include "adapters/config/config.h"
#include "adapters/config/yaml.h"

namespace hf::config {

// Lays what is given over what was there; absent keys change nothing.
Result<void> parse_runtime(const YAML::Node& node, RuntimeSettings& runtime);

}  // namespace hf::config
