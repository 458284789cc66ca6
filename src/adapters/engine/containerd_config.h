// ContainerdConfig: the runtime holdfast in containerd's config.toml, of the versions 1, 2 and 3.
#pragma once

#include <string_view>

#include "adapters/engine/registration.h"
#include "core/base/result.h"

namespace hf::engine {

// Our runtime has all that runc's has, but the program. Errors name the line and the column, not the file. A text that
// says nothing is made anew, as version 2.
Result<Edited> add_to_containerd(std::string_view text, const Registration& registration);
Result<std::string> remove_from_containerd(std::string_view text, Before before);
Result<std::optional<Registered>> find_in_containerd(std::string_view text);
bool is_bare_containerd(std::string_view text);

}  // namespace hf::engine
