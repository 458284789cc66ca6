// CrioConfig: the runtime "holdfast" in a config file of CRI-O.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "adapters/engine/registration.h"
#include "core/base/result.h"

namespace hf::engine {

// The others are CRI-O's other config files, in the order in which it reads them: the settings of its monitor are
// copied from its default runtime, or from runc or crun.
Result<Edited> add_to_crio(std::string_view text, const Registration& registration,
                           const std::vector<std::string>& others);
Result<std::string> remove_from_crio(std::string_view text, Before before);
Result<std::optional<Registered>> find_in_crio(std::string_view text);
bool is_empty_toml(std::string_view text);  // has neither values nor comments

}  // namespace hf::engine
