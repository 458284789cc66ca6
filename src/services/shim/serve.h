// Serve: handles one call of an engine, with the command line of runc and crun.
#pragma once

#include <string>
#include <vector>

namespace hf::shim {

// Takes the arguments after the program's name. Returns an exit code unless the process was replaced by the runtime.
int serve(const std::vector<std::string>& arguments);

}  // namespace hf::shim
