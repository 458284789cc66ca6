// Request: what a container asks of NVIDIA's driver, through variables of its environment or through mounts.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hf::nvidia {

// The value of NVIDIA_VISIBLE_DEVICES. Entries that are empty or "void" request nothing.
struct VisibleDevices {
  std::string text;  // as it was written, for messages
  bool all = false;
  bool none = false;                   // the driver, but no GPU
  std::vector<std::string> ids;        // indices, UUIDs, PCI addresses, "0:1" for MIG
  std::vector<std::string> cdi_names;  // "nvidia.com/gpu=0"

  [[nodiscard]] bool requests_gpus() const { return all || none || !ids.empty(); }
  friend bool operator==(const VisibleDevices&, const VisibleDevices&) = default;
};
VisibleDevices parse_visible_devices(std::string_view text);

// The value of NVIDIA_DRIVER_CAPABILITIES, in lower case. "all" stands for every one.
struct DriverCapabilities {
  std::set<std::string> names = {"utility", "compute"};

  [[nodiscard]] bool has(const std::string& name) const { return names.contains("all") || names.contains(name); }
  friend bool operator==(const DriverCapabilities&, const DriverCapabilities&) = default;
};
DriverCapabilities parse_driver_capabilities(std::string_view text);  // the default where the text is empty

std::vector<std::uint32_t> parse_imex_channels(std::string_view text);  // what is no number is left out

struct Request {
  VisibleDevices visible;
  DriverCapabilities capabilities;
  std::vector<std::uint32_t> imex_channels;  // NVIDIA_IMEX_CHANNELS
  bool configures_mig = false;               // NVIDIA_MIG_CONFIG_DEVICES=all of a privileged container
  bool monitors_mig = false;                 // NVIDIA_MIG_MONITOR_DEVICES=all, likewise
  std::vector<std::string> mistakes = {};    // variables with values that mean nothing, and what they may be
};
Request request_in(const std::map<std::string, std::string>& environment, bool is_privileged = false);

// What mounts of /dev/null below this directory request. An image can declare a volume, but not a mount of /dev/null.
inline constexpr std::string_view kDeviceMounts = "/var/run/nvidia-container-devices/";
struct DeviceMounts {
  std::vector<std::string> names;  // below that directory
  VisibleDevices visible;          // its CDI names are those of "cdi/vendor.com/class/name"
  std::vector<std::uint32_t> imex_channels;
  std::vector<std::string> mistakes;  // as of a request
};
void add_mount(DeviceMounts& mounts, std::string_view source, std::string_view destination);

// Is it NVIDIA's hook, which edits the device cgroup without the runtime's knowledge?
bool is_nvidia_hook(const std::string& path);

}  // namespace hf::nvidia
