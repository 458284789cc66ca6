// SystemdRules: the DeviceAllow= entries with which a systemd unit lists its devices ("/dev/char/195:0 rw",
// "char-nvidia rw", "block-* m").
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/device/rule.h"

namespace hf::device {

// The driver names of /proc/devices with their majors.
struct DriverNames {
  std::multimap<std::string, std::uint32_t> character;
  std::multimap<std::string, std::uint32_t> block;
};

DriverNames parse_driver_names(std::string_view proc_devices);

// What parsing an entry needs to know about this host: the drivers, and which device a path under /dev is.
struct DeviceAllowContext {
  DriverNames drivers;
  std::function<std::optional<Device>(const std::string& path)> device_at;
};

// A pattern such as "char-nvidia*" may name several majors, or none: systemd then allows nothing, and so does this.
Result<RuleSet> parse_device_allow(std::string_view text, const DeviceAllowContext& context);

// Writes one rule for the unit. Fails for what systemd cannot express: "*:0", ranges.
Result<std::string> to_device_allow(const Rule& rule);

}  // namespace hf::device
