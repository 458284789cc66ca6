// Capabilities: the few rights of root that the guard needs; the rest is given up at the start.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace hf::programs {

std::vector<std::string> needed_capabilities();  // "CAP_SYS_ADMIN", …: packaging/holdfastd.service lists the same

// For this thread and all that it starts, for good: to be called before there are others. Which are missing that are
// needed is returned: the daemon is never ready then.
Result<std::vector<std::string>> keep_needed_capabilities();

}  // namespace hf::programs
