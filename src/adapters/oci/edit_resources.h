// EditResources: adds device rules to the resources that a runtime's `update` is called with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/container/entitlement/edits.h"

namespace hf::oci {

// The resources that `update` was called with, with these device nodes allowed as well, if they have device rules at
// all.
Result<std::string> allow_in_resources(std::string_view text, const std::vector<container::NodeEdit>& nodes);

}  // namespace hf::oci
