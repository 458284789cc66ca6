// DeviceNode: the device nodes there are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/cgroup_path.h"
#include "core/container/entitlement.h"
#include "core/device/device.h"
#include "kernel/host.h"

namespace hf::kernel {

// Every device that has a node below a folder, each once, sorted. What cannot be looked at is passed over.
std::vector<device::Device> read_device_nodes(const std::string& folder);

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

// The same under the host's own /dev, in one step: whoever opens it finds the old node or the new one.
Result<void> make_node_on(const Host& host, const NewNode& node);

// The links of a folder of the host, each with what it says; "" for what is no link.
std::map<std::string, std::string> read_links(const Host& host, const std::string& folder);
// In the place of a link that says something else; what is no link is left alone.
Result<void> make_link_on(const Host& host, const std::string& path, const std::string& target);
Result<void> remove_link_on(const Host& host, const std::string& path);

// Every device that sysfs knows by a name under /dev, with its numbers as they are now.
struct KnownDevice {
  std::string path;
  device::Device device;
};
std::vector<KnownDevice> read_known_devices(const Host& host);

// A small file of sysfs about the hardware behind a device ("vendor", "numa_node"), trimmed; "" where there is none.
std::string read_hardware(const Host& host, const device::Device& device, const std::string& file);

}  // namespace hf::kernel
