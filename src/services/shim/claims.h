// Claims: which devices a new container may have, by its requests and by what vouches for them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/entitlement/edits.h"
#include "core/container/entitlement/entitlement.h"
#include "kernel/files/host.h"
#include "services/shim/facts.h"

namespace hf::shim {

struct Claims {
  std::vector<container::Claim> claims;  // weighed, the refused ones among them
  std::set<std::string> named_paths;     // of requested CDI devices, whatever their class
  container::ContainerEdits edits;       // what requested CDI devices have besides nodes
  std::vector<std::string> notes;        // which CDI names were not trusted
};

// Are there names that only CDI specs resolve?
bool needs_cdi_specs(const Facts& facts);

// Fails if a requested device is not there. Of the host it only reads the numbers of device nodes that are named.
Result<Claims> collect_claims(const kernel::Host& host, const DeliveryInput& input, const Facts& facts);

}  // namespace hf::shim
