// Unit: the device settings in a unit's files, which systemd would apply at the next daemon-reload.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/device/systemd_rules.h"
#include "core/device/table.h"
#include "kernel/files/host.h"

namespace hf::systemd {

enum class DevicePolicy : std::uint8_t { automatic, closed, strict };

// `fallback` for a value that systemd does not know.
DevicePolicy policy_of(std::string_view value, DevicePolicy fallback);

struct UnitDevices {
  DevicePolicy policy = DevicePolicy::automatic;
  std::vector<std::string> allow;   // DeviceAllow, as systemd writes it
  std::vector<std::string> pinned;  // BPFProgram=device:…: additional programs that systemd attaches
  std::vector<std::string> files;   // that were read
};

// Applies one file of a unit on top of earlier ones; an empty DeviceAllow= clears the list.
void apply_unit_file(std::string_view text, UnitDevices& unit);

// The unit with its drop-ins, merged as systemd merges them. Absent if systemd has no file of it.
std::optional<UnitDevices> read_unit_devices(const kernel::Host& host, const std::string& unit);

// What systemd would allow: everything for a unit without policy and list.
device::Table meaning(const UnitDevices& unit, const device::DeviceAllowContext& options);

// Whether systemd is the init process of this host.
bool is_running(const kernel::Host& host);

}  // namespace hf::systemd
