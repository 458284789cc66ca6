// Delivery: what a new container is given, decided by the same rules by which the guard decides what it is owed.
#pragma once

#include <string>
#include <vector>

#include "adapters/config/config.h"
#include "adapters/oci/edit_spec.h"
#include "adapters/oci/spec.h"
#include "core/container/entitlement/entitlement.h"
#include "kernel/files/host.h"
#include "services/shim/request.h"

namespace hf::shim {

struct DeliveryInput {
  std::string bundle;  // an absolute path
  oci::Spec spec;
  std::string ourselves;  // path of this program, which is also the container's hook
  std::string file = {};  // path of the spec, where it is not the bundle's config.json
  Starter starter = Starter::other;
};

struct Delivery {
  oci::SpecChange change;
  std::vector<container::WantedNode> given;  // for the ledger
  std::vector<std::string> notes;            // which requests were not trusted
};

// Fails, with cause and cure in one line, if a requested device cannot be given.
Result<Delivery> plan_delivery(const kernel::Host& host, const config::Config& config, const DeliveryInput& input);

}  // namespace hf::shim
