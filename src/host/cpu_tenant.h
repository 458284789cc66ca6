// CpuTenant: a container of this host with what it asks of the CPUs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "adapters/config/config.h"
#include "core/container/container.h"
#include "core/cpu/assign.h"
#include "core/device/inventory.h"
#include "host/census.h"
#include "host/evidence.h"

namespace hf::host {

// Where the CPU manager tells a runtime that the container whose id it sends has its CPUs: the connection is closed
// then. The container's own program has not been started yet, so it never runs anywhere else.
inline constexpr const char* kPlacementSocket = "/run/holdfast/cpus/placement";

struct CpuTenant {
  cpu::Tenant tenant;
  container::Container container;
  cpu::CpuTime time;                        // of its configuration
  std::optional<cpu::CpuSet> memory_nodes;  // that its configuration confines it to
  bool has_cpuset = false;                  // in its configuration, which systemd may have been told of as well
  std::string problem;                      // why its request does not count
};

// Absent for a container inside another one, which shares that one's CPUs. A container of a pod asks by its resources,
// any other by labels and annotations; one that an unprivileged user started asks for nothing.
std::optional<CpuTenant> cpu_tenant_of(const DiscoveredContainer& discovered);

// Its configuration was changed since it was created (a pod that was resized in place).
void set_cpu_time(CpuTenant& tenant, const cpu::CpuTime& time);

// All containers that have a say, in the order of their start.
std::vector<CpuTenant> cpu_tenants_of(const std::vector<DiscoveredContainer>& discovered);

// The NUMA nodes of those owed devices that CPUs are wanted near to.
std::vector<cpu::NumaId> nodes_near(const cpu::CpuRequest& request, const container::Entitlement& owed,
                                    const device::Inventory& inventory);

// Fills in the NUMA nodes of the devices that each tenant wants its CPUs near to. Devices and evidence are read once,
// and only where a tenant asks for CPUs.
void locate_devices(const kernel::Host& host, const config::Config& config,
                    const std::vector<DiscoveredContainer>& discovered, std::vector<CpuTenant>& tenants);

}  // namespace hf::host
