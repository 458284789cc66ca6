// Reload: what of a configuration that is read again counts only after a restart.
#pragma once

#include <string>
#include <vector>

#include "adapters/config/config.h"

namespace hf::config {

// The keys whose values differ, and that the daemon reads only at its start.
std::vector<std::string> waits_for_restart_of_guard(const Config& running, const Config& read);
std::vector<std::string> waits_for_restart_of_plugin(const Config& running, const Config& read);

}  // namespace hf::config
