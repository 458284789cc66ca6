// HostRoot: lets a program that runs in a container see the host as a service of the host sees it.
#pragma once

#include <string>

#include "core/base/result.h"

namespace hf::kernel {

// Names the directory where the container has the host's root directory. Unset or empty: the program runs on the host.
inline constexpr const char* kHostRootVariable = "HOLDFAST_HOST_ROOT";

// Makes the directory that the variable names our root directory, and enters the host's cgroup namespace. From then on
// every path is the host's. Call it before any thread is started. The container must share the host's pid namespace.
// Does nothing where the variable is not set; removes the variable, because child processes are in that root already.
Result<void> enter_host_root();
Result<void> enter_host_root(const std::string& directory);

}  // namespace hf::kernel
