// DeviceAllow: what must be told to systemd so that a unit has more devices, and loses none by it.
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

std::string path_of(const device::Device& device);  // "/dev/char/195:0", which systemd reads without looking at /dev
std::string to_string(const DeviceEntry& entry);    // "/dev/char/195:0 rw"

// The interface that has the list of a unit: "org.freedesktop.systemd1.Scope". Fails for a text that systemd would not
// take for the name of a unit, and for a unit that has no processes and hence no list.
Result<std::string> interface_of(std::string_view unit);

// The entries the unit lacks. An entry takes the place of the one that systemd has for the same path, so it keeps those
// letters too. A unit without policy and list lets everything through: the first entry would close it, so it gets none.
Result<std::vector<DeviceEntry>> plan_additions(const UnitDevices& unit, const std::vector<DeviceEntry>& wanted);

}  // namespace hf::systemd
