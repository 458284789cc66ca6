// Resolve: the device nodes that a request for NVIDIA's GPUs stands for, as NVIDIA resolves it.
#pragma once

#include <string>
#include <vector>

#include "adapters/nvidia/request.h"
#include "core/container/entitlement/entitlement.h"
#include "core/device/inventory.h"

namespace hf::nvidia {

struct Resolved {
  std::vector<container::WantedNode> nodes;
  std::vector<std::string> not_wanted;  // device nodes of the whole set that the capabilities do not need
  std::vector<std::string> unknown;     // ids that name no GPU of this host
};
Resolved resolve(const Request& request, const device::Inventory& inventory);  // leaves out its CDI names

// The device nodes of one device by the id that a device plugin uses: a UUID (perhaps of a MIG device, perhaps with
// "::3" for one of several replicas) or an index. Empty where it is unknown.
std::vector<container::WantedNode> nodes_of(const std::string& id, const device::Inventory& inventory);

}  // namespace hf::nvidia
