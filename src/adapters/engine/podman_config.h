// PodmanConfig: the runtime "holdfast" in a containers.conf.
#pragma once

#include <string_view>

#include "adapters/engine/registration.h"
#include "core/base/result.h"

namespace hf::engine {

Result<Edited> add_to_podman(std::string_view text, const Registration& registration);
Result<std::string> remove_from_podman(std::string_view text, Before before);
Result<std::optional<Registered>> find_in_podman(std::string_view text);

}  // namespace hf::engine
