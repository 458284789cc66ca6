// DockerConfig: the runtime "holdfast" in docker's daemon.json.
#pragma once

#include <string_view>

#include "adapters/engine/registration.h"
#include "core/base/result.h"

namespace hf::engine {

// Errors name the line and the column, not the file. An empty text becomes a new object.
Result<Edited> add_to_docker(std::string_view text, const Registration& registration);
// Removes holdfast's runtime; if it is the default, the default is set to the earlier one, or removed.
Result<std::string> remove_from_docker(std::string_view text, Before before);
Result<std::optional<Registered>> find_in_docker(std::string_view text);  // absent: not registered
bool is_empty_docker_config(std::string_view text);                       // like the start of a new file

}  // namespace hf::engine
