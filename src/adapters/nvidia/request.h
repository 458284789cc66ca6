// Request: the GPUs that a container asks for through NVIDIA_VISIBLE_DEVICES, resolved as NVIDIA resolves them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/container/entitlement/entitlement.h"
#include "core/device/inventory.h"

namespace hf::nvidia {

struct Request {
  std::string visible;       // NVIDIA_VISIBLE_DEVICES: all, none, void, indices, UUIDs, "0:1" for MIG
  std::string capabilities;  // NVIDIA_DRIVER_CAPABILITIES; "" is utility,compute
  std::string imex;          // NVIDIA_IMEX_CHANNELS
  std::string mig_config;    // NVIDIA_MIG_CONFIG_DEVICES; counts for privileged containers only
  std::string mig_monitor;   // NVIDIA_MIG_MONITOR_DEVICES, likewise
  bool is_privileged = false;
};
Request request_in(const std::map<std::string, std::string>& environment, bool is_privileged = false);

struct Resolved {
  std::vector<container::WantedNode> nodes;
  std::vector<std::string> not_wanted;  // device nodes of the whole set that the capabilities do not need
  std::vector<std::string> unknown;     // entries that name no GPU of this host
};
Resolved resolve(const Request& request, const device::Inventory& inventory);

// The device nodes of one device by the id that a device plugin uses: a UUID (perhaps of a MIG device, perhaps with
// "::3" for one of several replicas) or an index. Empty where it is unknown.
std::vector<container::WantedNode> nodes_of(const std::string& id, const device::Inventory& inventory);

// Is it NVIDIA's hook, which edits the device cgroup without the runtime's knowledge?
bool is_nvidia_hook(const std::string& path);

}  // namespace hf::nvidia
