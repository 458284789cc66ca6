// OciConfig: what an OCI runtime config says about devices.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/device/oci_rules.h"

namespace hf::oci {

// linux.resources.devices of a config.json, or that list by itself.
Result<device::OciRules> parse_device_rules(std::string_view json);
std::string write_device_rules(const device::OciRules& rules);  // the list by itself

}  // namespace hf::oci
