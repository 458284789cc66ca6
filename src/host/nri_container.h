// NriContainer: what this host knows about a container that an engine is about to create, as NRI describes it.
#pragma once

#include <vector>

#include "adapters/config/config.h"
#include "adapters/nri/session.h"
#include "core/cpu/assign.h"
#include "core/device/inventory.h"
#include "host/evidence.h"
#include "kernel/files/host.h"

namespace hf::host {

cpu::Owner owner_of(const nri::Container& container);

cpu::Tenant tenant_of(const nri::Container& container);

struct HostDevices {
  device::Inventory inventory;
  Sources sources;
};
HostDevices read_host_devices(const kernel::Host& host, const config::Config& config);

// The NUMA nodes of its devices: of those that the engine gives it, and of those that kubelet has allocated to it,
// which may come by a runtime that NRI is not told of.
std::vector<cpu::NumaId> nodes_near(const kernel::Host& host, const nri::Container& container,
                                    const cpu::CpuRequest& request, const HostDevices& devices,
                                    const device::DeviceClasses& classes);

// The nodes that its devices do not work without, and that the engine does not give it.
std::vector<nri::Device> missing_nodes_of(const nri::Container& container, const device::Inventory& inventory,
                                          const device::DeviceClasses& classes);

}  // namespace hf::host
