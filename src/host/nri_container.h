// NriContainer: what this host knows about a container that an engine is about to create, as NRI describes it.
#pragma once

#include <vector>

#include "adapters/config/config.h"
#include "adapters/nri/session.h"
#include "core/cpu/assign.h"
#include "core/device/inventory.h"
#include "kernel/files/host.h"

namespace hf::host {

cpu::Owner owner_of(const nri::Container& container);

// With the NUMA nodes of its devices.
cpu::Tenant tenant_of(const nri::Container& container, const device::Inventory& inventory);

// The nodes that its devices do not work without, and that the engine does not give it.
std::vector<nri::Device> missing_nodes_of(const nri::Container& container, const device::Inventory& inventory,
                                          const device::DeviceClasses& classes);

}  // namespace hf::host
