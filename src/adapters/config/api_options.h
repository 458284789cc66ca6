// ApiOptions: the section "kube.api" of the config file.
#pragma once

#include "adapters/config/config.h"
#include "adapters/document/yaml.h"
#include "core/base/result.h"

namespace hf::config {

Result<void> parse_api(document::Yaml node, ApiSettings& api);

}  // namespace hf::config
