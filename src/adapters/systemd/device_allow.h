// DeviceAllow: the entries to send to systemd so that a unit gains devices and loses none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "adapters/systemd/unit.h"
#include "core/base/result.h"
#include "core/device/device.h"

namespace hf::systemd {

struct DeviceEntry {
  device::Device device;
  device::Access access = device::Access::none;

  friend bool operator==(const DeviceEntry&, const DeviceEntry&) = default;
};

std::string path_of(const device::Device& device);  // "/dev/char/195:0", which systemd parses without a lookup in /dev
std::string to_string(const DeviceEntry& entry);    // "/dev/char/195:0 rw"

// The D-Bus interface with a unit's device list: "org.freedesktop.systemd1.Scope". Fails for a text that systemd would
// not accept as a unit name, and for a unit type that has no processes and hence no list.
Result<std::string> interface_of(std::string_view unit);

// The entries the unit lacks. An entry replaces the one that systemd has for the same path, so it includes the access
// bits of that one. A unit without policy and list allows everything: the first entry would restrict it, so it gets
// none.
Result<std::vector<DeviceEntry>> plan_additions(const UnitDevices& unit, const std::vector<DeviceEntry>& wanted);

}  // namespace hf::systemd
