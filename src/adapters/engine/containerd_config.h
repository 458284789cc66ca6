// ContainerdConfig: the runtime "holdfast" in containerd's config.toml, versions 1, 2 and 3.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "adapters/engine/registration.h"
#include "core/base/result.h"

namespace hf::engine {

// The new runtime has the options of runc's entry, with another program. Errors name the line and the column, not the
// file. A text without any content becomes a file of version 2.
Result<Edited> add_to_containerd(std::string_view text, const Registration& registration);
// In a file that another one imports (`mains`): runc's entry may stand there, and a text without any content gets its
// version, or `version` where that is not known. A new drop-in of a main file of version 1 or 2 is refused.
Result<Edited> add_to_containerd_drop_in(std::string_view text, const Registration& registration,
                                         const std::vector<std::string>& mains, std::string_view version);
Result<std::string> remove_from_containerd(std::string_view text, Before before);
Result<std::optional<Registered>> find_in_containerd(std::string_view text);
bool is_empty_containerd_config(std::string_view text);

}  // namespace hf::engine
