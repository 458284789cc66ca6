// CpuOptions: the parts of the config file about exclusive CPUs: cpus, nri.
#pragma once

#include "adapters/config/config.h"
#include "adapters/config/yaml.h"

namespace hf::config {

// Each overwrites the settings that are given; absent keys change nothing.
Result<void> parse_cpus(const YAML::Node& node, CpuSettings& cpus);
Result<void> parse_nri(const YAML::Node& node, NriSettings& nri);

}  // namespace hf::config
