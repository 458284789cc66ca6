// CrioConfig: the runtime holdfast in a config file of CRI-O.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "adapters/engine/registration.h"
#include "core/base/result.h"

namespace hf::engine {

// The others are CRI-O's other config files, in the order in which it reads them: how its monitor is called is taken
// over from the runtime that it has by default, or from runc's or crun's.
Result<Edited> add_to_crio(std::string_view text, const Registration& registration,
                           const std::vector<std::string>& others);
Result<std::string> remove_from_crio(std::string_view text, Before before);
Result<std::optional<Registered>> find_in_crio(std::string_view text);
bool is_bare_toml(std::string_view text);  // says nothing, and has no comment either

}  // namespace hf::engine
