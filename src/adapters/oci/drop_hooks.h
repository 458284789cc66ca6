// DropHooks: removes hooks from a config.json, and keeps every other character.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::oci {

Result<std::string> drop_hooks(std::string_view text, const std::vector<std::string>& paths);

}  // namespace hf::oci
