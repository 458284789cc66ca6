// Module: loads kernel modules.
#pragma once

#include <string>

#include "core/base/result.h"

namespace hf::kernel {

// Loads a module of the running kernel with the host's modprobe.
Result<void> load_module(const std::string& name);

}  // namespace hf::kernel
