// Target: resolves an argument to a container, a process, a cgroup, a program or a file.
#pragma once

#include <string>

#include "core/base/result.h"
#include "services/rules/target.h"

namespace hf::programs {

// The container that an argument names; or what an argument in another form (pid:, cgroup:, program:,
// file:) means.
Result<rules::NamedTarget> target_of(const std::string& argument);

}  // namespace hf::programs
