// Serve: one call of an engine, as runc and crun would take it.
#pragma once

#include <string>
#include <vector>

namespace hf::shim {

// The words after the program's name. Comes back with an exit code where it has not become the runtime.
int serve(const std::vector<std::string>& words);

}  // namespace hf::shim
