// OciConfig: the device rules of an OCI runtime config.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/device/oci_rules.h"

namespace hf::oci {

// Accepts a whole config.json, or its list linux.resources.devices by itself.
Result<device::OciRules> parse_device_rules(std::string_view json);

}  // namespace hf::oci
