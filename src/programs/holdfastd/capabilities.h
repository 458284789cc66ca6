// Capabilities: the few rights of root that the guard needs; the rest is given up at the start.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace hf::programs {

std::vector<std::string> needed_capabilities();  // "CAP_BPF", …: packaging/holdfastd.service lists the same

// For this process and all it starts, for good. Which are missing that would be needed is returned, not an error: what
// needs them will say so.
Result<std::vector<std::string>> keep_needed_capabilities();

}  // namespace hf::programs
