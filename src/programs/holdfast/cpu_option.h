// CpuOption: names of options of kubelet's static CPU manager, as they are typed.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace hf::programs {

// Of "NAME", "NAME=BOOL", or a list of these. The error says which name is unknown, and what was probably meant.
Result<void> check_option_names(const std::vector<std::string>& options);

}  // namespace hf::programs
