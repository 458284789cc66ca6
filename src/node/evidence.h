// Evidence: who says that a container may have a device, and what is to be believed of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "adapters/cdi/cdi.h"
#include "adapters/config/config.h"
#include "adapters/kube/checkpoint.h"
#include "adapters/nvidia/settings.h"
#include "core/container/entitlement.h"
#include "core/device/inventory.h"
#include "kernel/host.h"
#include "node/census.h"

namespace hf::node {

// What is read once for all containers.
struct Sources {
  cdi::Registry cdi;
  std::optional<kube::Checkpoint> checkpoint;
  std::string checkpoint_problem;  // why there is none, where kubelet has one
  std::vector<kube::PreparedClaim> prepared;
  bool knows_allocations = false;
  nvidia::Settings nvidia;
  bool has_nvidia_settings = false;
  std::vector<std::string> notes;
};
Sources read_sources(const kernel::Host& host);
// Only kubelet's part of it.
void read_allocations(const kernel::Host& host, Sources& sources);

std::vector<container::Claim> claims_of(const kernel::Host& host, const Resident& resident, const Sources& sources,
                                        const device::Inventory& inventory);

container::Entitlement entitlement_of(const kernel::Host& host, const Resident& resident, const Sources& sources,
                                      const device::Inventory& inventory, const config::Config& config);

inline constexpr const char* kCheckpointFile = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";
inline constexpr const char* kPreparedFile = "/var/lib/kubelet/dra_manager_state";

}  // namespace hf::node
