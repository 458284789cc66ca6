#include "adapters/oci/hook_state.h"

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"

namespace hf::oci {

Result<HookState> parse_hook_state(std::string_view json) {
  const document::Json input = document::parse_json(json).value_or(document::Json());
  HookState state;
  for (const auto& [name, text] : {std::pair("id", &state.id), std::pair("bundle", &state.bundle)}) {
    std::optional<std::string> value = document::string_at(input, name);
    if (!value) {
      return fail(std::errc::invalid_argument, std::string("the state on standard input has no ") + name);
    }
    *text = *std::move(value);
  }
  if (!state.bundle.starts_with('/')) {
    return fail(std::errc::invalid_argument, "the state on standard input has no absolute bundle");
  }
  return state;
}

}  // namespace hf::oci
