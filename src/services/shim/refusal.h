// Refusal: why a requested device cannot be given, with cause and cure in one line.
#pragma once

#include <string>

#include "core/base/result.h"

namespace hf::shim {

inline std::unexpected<Error> refuse(const std::string& reason) { return fail(std::errc::no_such_device, reason); }

}  // namespace hf::shim
