// PluginOptions: the section "kube" of the config file, and the config file of NVIDIA's device plugin.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "adapters/config/config.h"
#include "adapters/document/yaml.h"
#include "core/base/result.h"

namespace hf::config {

Result<void> parse_kube(document::Yaml node, KubeSettings& settings);

// The file that NVIDIA's device plugin reads (version v1), applied to the settings. What it asks for and this plugin
// cannot do is an error that names it. `notes`: what has no effect here, and why.
Result<void> parse_nvidia_plugin(std::string_view text, KubeSettings& settings, std::vector<std::string>& notes);

}  // namespace hf::config
