// Module: the kernel's modules.
#pragma once

#include <string>

#include "core/base/result.h"

namespace hf::kernel {

// Loads one of the running kernel's by the host's modprobe.
Result<void> load_module(const std::string& name);

}  // namespace hf::kernel
