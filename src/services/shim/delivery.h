// Delivery: what a new container is given, decided by the same rules by which the guard decides what it is owed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "adapters/config/config.h"
#include "adapters/nvidia/library_identity.h"
#include "adapters/oci/edit_spec.h"
#include "core/base/result.h"
#include "core/container/entitlement/entitlement.h"
#include "kernel/files/host.h"
#include "services/shim/facts.h"
#include "services/shim/host_step.h"

namespace hf::shim {

struct Delivery {
  oci::SpecChange change;
  std::vector<container::WantedNode> given;                   // for the ledger
  std::vector<std::string> notes;                             // which requests were not trusted
  std::vector<HostStep> steps;                                // to be carried out before the container starts
  std::map<std::string, nvidia::LibraryIdentity> identities;  // of the driver's libraries, where they are known already
  bool has_every_gpu = false;  // of the host, and whole, but for those that the driver excludes
};

// Reads the host and changes nothing. Fails, with cause and cure in one line, if a requested device cannot be given.
Result<Delivery> plan_delivery(const kernel::Host& host, const config::Config& config, const DeliveryInput& input,
                               Facts facts);

}  // namespace hf::shim
