// YamlToJson: converts a YAML document to JSON whose values are all text, so that one decoder serves both.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace hf::cdi {

Result<std::string> yaml_to_json(std::string_view text);

}  // namespace hf::cdi
