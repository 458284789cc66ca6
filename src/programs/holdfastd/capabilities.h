// Capabilities: the few capabilities that the guard needs; all others are dropped at the start.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace hf::programs {

// Drops capabilities of this thread and of all it starts, so it must be called before any thread is started. Returns
// the needed capabilities that are missing; without them the daemon never becomes ready.
Result<std::vector<std::string>> keep_needed_capabilities();

}  // namespace hf::programs
