// DeviceNode: the device nodes of the host.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/cgroup/cgroup_path.h"
#include "core/container/entitlement/entitlement.h"
#include "core/device/device.h"
#include "kernel/files/host.h"

namespace hf::kernel {

// Every device that has a device node below a directory, sorted and without duplicates. Unreadable entries are skipped.
std::vector<device::Device> read_device_nodes(const std::string& directory);

struct NodeOnHost {
  device::Device device;
  std::uint32_t mode = 0;  // permission bits
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};
std::optional<NodeOnHost> read_node(const Host& host, const std::string& path);

struct NewNode {
  std::string path;
  device::Device device;
  container::Permissions permissions;
};

// Creates or replaces a device node of the host atomically: other processes find the old node or the new one.
Result<void> make_node_on(const Host& host, const NewNode& node);

// The entries of a directory of the host, each with its symlink target, or "" where it is not a symlink.
std::map<std::string, std::string> read_links(const Host& host, const std::string& directory);
// Creates a symlink, or replaces one with another target. Fails where anything else exists at this path.
Result<void> make_symlink_on(const Host& host, const std::string& path, const std::string& target);
Result<void> remove_symlink_on(const Host& host, const std::string& path);

// Every device that sysfs lists with a name under /dev, with its current device numbers.
struct KnownDevice {
  std::string path;
  device::Device device;
};
std::vector<KnownDevice> read_known_devices(const Host& host);

// A small file of sysfs about the hardware behind a device ("vendor", "numa_node"), trimmed; "" where there is none.
std::string read_hardware(const Host& host, const device::Device& device, const std::string& file);

}  // namespace hf::kernel
