// Delivery: what a container is given, decided by the same rules by which the guard decides what it is owed.
#pragma once

#include <string>
#include <vector>

#include "adapters/config/config.h"
#include "adapters/oci/edit_spec.h"
#include "adapters/oci/spec.h"
#include "core/container/entitlement.h"
#include "kernel/host.h"
#include "services/shim/request.h"

namespace hf::shim {

struct Order {
  std::string bundle;  // an absolute path
  oci::Spec spec;
  std::string ourselves;  // our own program: the hook of the container's
  std::string file = {};  // the spec's, where it is not the bundle's config.json
  Starter starter = Starter::other;
};

struct Delivery {
  oci::SpecChange change;
  std::vector<container::WantedNode> given;  // for the ledger
  std::vector<std::string> notes;            // what was asked for and is not believed
};

// Fails, with cause and cure in one line, where a device is asked for that cannot be given.
Result<Delivery> plan_delivery(const kernel::Host& host, const config::Config& config, const Order& order);

}  // namespace hf::shim
