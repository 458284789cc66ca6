// DockerConfig: the runtime holdfast in docker's daemon.json.
#pragma once

#include <string_view>

#include "adapters/engine/registration.h"
#include "core/base/result.h"

namespace hf::engine {

// Errors name the line and the column, not the file. An empty text is made anew.
Result<Edited> add_to_docker(std::string_view text, const Registration& registration);
// Without what is ours; a default that was ours becomes what it was before.
Result<std::string> remove_from_docker(std::string_view text, Before before);
Result<std::optional<Registered>> find_in_docker(std::string_view text);  // absent: nothing of ours
bool is_bare_docker(std::string_view text);                               // as we would begin a new one

}  // namespace hf::engine
