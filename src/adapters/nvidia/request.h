// Request: which GPUs a container asked for, in the words of NVIDIA_VISIBLE_DEVICES, resolved as NVIDIA resolves them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/container/entitlement.h"
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
  std::vector<std::string> not_wanted;  // of the whole set, what the capabilities do without
  std::vector<std::string> unknown;     // words that name no GPU of this node
};
Resolved resolve(const Request& request, const device::Inventory& inventory);

// The nodes of one device by the id a device plugin knows it by: a UUID, perhaps of a MIG device or with "::3" for one
// of several replicas, or an index. Empty where it is unknown.
std::vector<container::WantedNode> nodes_of(const std::string& id, const device::Inventory& inventory);

// Is it NVIDIA's hook, which edits the device cgroup behind the runtime's back?
bool is_nvidia_hook(const std::string& path);

}  // namespace hf::nvidia
