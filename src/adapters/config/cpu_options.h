// CpuOptions: the parts of the config file about exclusive CPUs: cpus, nri.
#pragma once

#include "adapters/config/config.h"
#include "adapters/config/fields.h"

namespace hf::config {

// Each overwrites the settings that are given; absent keys change nothing.
Result<void> parse_cpus(Yaml node, CpuSettings& cpus);
Result<void> parse_nri(Yaml node, NriSettings& nri);

}  // namespace hf::config
