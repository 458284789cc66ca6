// LowLevel: the runtime that does the work, and how we become it.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace hf::shim {

// The first of these that is there: a path, or a name in the folders of PATH and the usual ones. Never ourselves.
Result<std::string> find_low_level(const std::vector<std::string>& programs);

// Comes back only if it fails.
std::unexpected<Error> become(const std::string& program, const std::vector<std::string>& words);

// As a child, to the end, with our files and environment; signals that ask us to end are handed on to it. What a shell
// would call its exit code.
Result<int> run_to_end(const std::string& program, const std::vector<std::string>& words);

}  // namespace hf::shim
