// Driver: the kernel modules of NVIDIA's driver that a container needs before it starts.
#pragma once

#include <optional>
#include <string>

#include "adapters/config/config.h"
#include "adapters/oci/spec.h"
#include "kernel/files/host.h"
#include "services/shim/facts.h"

namespace hf::shim {

// The module that has to be loaded next; absent where none is missing, the request is not trusted, or the config does
// not permit it.
std::optional<std::string> driver_to_load(const Facts& facts, const config::RuntimeSettings& settings);

// Loads the missing modules and takes the inventory again. A module that cannot be loaded is no error here: the plan
// refuses the devices that are missing.
void load_driver(const kernel::Host& host, const config::Config& config, const oci::Spec& spec, Facts& facts);

}  // namespace hf::shim
