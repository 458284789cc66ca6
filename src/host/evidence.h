// Evidence: the claims that a container may have a device, collected from all sources and weighed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "adapters/cdi/cdi.h"
#include "adapters/config/config.h"
#include "adapters/kube/checkpoint.h"
#include "adapters/nvidia/request.h"
#include "adapters/nvidia/settings.h"
#include "adapters/oci/spec.h"
#include "core/container/entitlement/entitlement.h"
#include "core/container/entitlement/trust.h"
#include "core/device/inventory.h"
#include "host/census.h"
#include "kernel/files/host.h"

namespace hf::host {

// Sources of claims that are read once for all containers.
struct Sources {
  std::string kubelet = "/var/lib/kubelet";  // its root directory
  cdi::Registry cdi;
  std::optional<kube::Checkpoint> checkpoint;
  std::string checkpoint_problem;  // why it could not be read, where kubelet has one
  std::vector<kube::PreparedClaim> prepared;
  bool knows_allocations = false;
  nvidia::Settings nvidia;
  std::vector<container::TrustRule> trust;
  std::vector<std::string> notes;
};
Sources read_sources(const kernel::Host& host, const config::Config& config);
// Reads only kubelet's part of the sources, from the directory that they name.
void read_allocations(const kernel::Host& host, Sources& sources);

// What kubelet allocated to this container of the pod; nothing where the container's name or its pod is unknown.
std::vector<const kube::Allocation*> allocations_to(const Sources& sources, const container::Pod& pod);
std::vector<const kube::PreparedClaim*> claims_prepared_for(const Sources& sources, const container::Pod& pod);

std::vector<container::Claim> claims_of(const kernel::Host& host, const DiscoveredContainer& discovered,
                                        const Sources& sources, const device::Inventory& inventory);

// A container that is being created by holdfast-runtime, which acts on the request as NVIDIA's hook would.
struct NewContainer {
  const oci::Spec& spec;
  std::string spec_file;
  std::optional<container::Pod> pod;
  const nvidia::Request& nvidia;  // only what is trusted: it is not read from the spec again
};
std::vector<container::Claim> claims_of(const kernel::Host& host, const NewContainer& created, const Sources& sources,
                                        const device::Inventory& inventory);

container::Entitlement entitlement_of(const kernel::Host& host, const DiscoveredContainer& discovered,
                                      const Sources& sources, const device::Inventory& inventory,
                                      const config::Config& config);

std::string checkpoint_file(const Sources& sources);

}  // namespace hf::host
