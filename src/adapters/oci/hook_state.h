// HookState: the container state that a runtime passes to a hook on standard input.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace hf::oci {

struct HookState {
  std::string id;
  std::string bundle;
};

Result<HookState> parse_hook_state(std::string_view json);

}  // namespace hf::oci
