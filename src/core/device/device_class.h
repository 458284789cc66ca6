// DeviceClass: which device nodes make up one kind of device, and which of them a container needs to use it at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/device/device.h"
#include "core/device/systemd_rules.h"

namespace hf::device {

// unit:    one device ("/dev/nvidia0").
// control: no unit works without it ("/dev/nvidiactl").
// helper:  belongs to the whole set, but the device works without it ("/dev/nvidia-uvm-tools").
// extra:   only for containers that ask for it ("/dev/nvidia-modeset").
enum class Part : std::uint8_t { unit, control, helper, extra };
std::string to_string(Part part);

// How to find a node's device number where sysfs does not have it, as with NVIDIA's nodes.
struct Numbering {
  std::vector<std::string> drivers;    // names in /proc/devices, the newest first
  std::optional<std::uint32_t> major;  // of a static assignment, where no driver name is listed
  std::optional<std::uint32_t> minor;  // absent: the number at the end of the node's name
};

struct NodePattern {
  std::string glob;  // of the path, as fnmatch(3) means it
  Part part = Part::unit;
  std::optional<Numbering> numbering;
  bool is_implied = true;  // control, helper: a unit implies it; otherwise it is owed only where it is named
};

struct DeviceClass {
  std::string name;   // "nvidia": in the config file and on the command line
  std::string title;  // "NVIDIA GPU"
  std::vector<NodePattern> nodes;
  std::vector<std::string> vendors;  // PCI vendors of its DRI nodes ("0x1002"); none: those of any vendor
};
using DeviceClasses = std::vector<DeviceClass>;

const DeviceClasses& built_in_classes();

struct NodeRole {
  const DeviceClass* device_class = nullptr;
  const NodePattern* pattern = nullptr;
};
// The class a path belongs to. A DRI node belongs to the class of its vendor, where that is known.
std::optional<NodeRole> role_of(const DeviceClasses& classes, const std::string& path, std::string_view vendor = {});

const DeviceClass* find_class(const DeviceClasses& classes, std::string_view name);
Result<void> check_class(const DeviceClasses& classes, std::string_view name);  // the error suggests one

// The device number that the driver gives a node of that name. Absent where it is not known, as with a dynamic major
// whose driver is not loaded.
std::optional<Device> numbers_of(const NodePattern& pattern, const std::string& path, const DriverNames& drivers);

// The names of the drivers that have this major, "" where none has.
std::string driver_with(const DriverNames& drivers, Kind kind, std::uint32_t major);

}  // namespace hf::device
