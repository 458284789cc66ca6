// ApiOptions: the section "kube.api" of the config file.
#pragma once

#include "adapters/config/config.h"
#include "core/base/result.h"

namespace YAML {
class Node;
}

namespace hf::config {

Result<void> parse_api(const YAML::Node& node, ApiSettings& api);

}  // namespace hf::config
