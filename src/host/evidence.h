// Evidence: the claims that a container may have a device, collected from all sources and weighed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "adapters/cdi/cdi.h"
#include "adapters/config/config.h"
#include "adapters/kube/checkpoint.h"
#include "adapters/nvidia/settings.h"
#include "core/container/entitlement/entitlement.h"
#include "core/device/inventory.h"
#include "host/census.h"
#include "kernel/files/host.h"

namespace hf::host {

// Sources of claims that are read once for all containers.
struct Sources {
  cdi::Registry cdi;
  std::optional<kube::Checkpoint> checkpoint;
  std::string checkpoint_problem;  // why it could not be read, where kubelet has one
  std::vector<kube::PreparedClaim> prepared;
  bool knows_allocations = false;
  nvidia::Settings nvidia;
  bool has_nvidia_settings = false;
  std::vector<std::string> notes;
};
Sources read_sources(const kernel::Host& host);
// Reads only kubelet's part of the sources.
void read_allocations(const kernel::Host& host, Sources& sources);

std::vector<container::Claim> claims_of(const kernel::Host& host, const DiscoveredContainer& discovered,
                                        const Sources& sources, const device::Inventory& inventory);

container::Entitlement entitlement_of(const kernel::Host& host, const DiscoveredContainer& discovered,
                                      const Sources& sources, const device::Inventory& inventory,
                                      const config::Config& config);

inline constexpr const char* kCheckpointFile = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";
inline constexpr const char* kPreparedFile = "/var/lib/kubelet/dra_manager_state";

}  // namespace hf::host
