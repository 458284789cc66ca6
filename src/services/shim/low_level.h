// LowLevel: finds the low-level runtime (runc, crun) that does the work, and executes it.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace hf::shim {

// The first of these programs that exists: a path, or a name in PATH or the default directories. Never this program.
Result<std::string> find_low_level(const std::vector<std::string>& programs);

// Replaces this process; returns only if that fails.
std::unexpected<Error> exec_program(const std::string& program, const std::vector<std::string>& arguments);

// Runs a child to its end, with our files and environment, and forwards termination signals to it. Returns the exit
// code as a shell reports it.
Result<int> run_to_end(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace hf::shim
