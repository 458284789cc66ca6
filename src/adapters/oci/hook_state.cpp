#include "adapters/oci/hook_state.h"

#include <nlohmann/json.hpp>

namespace hf::oci {

Result<HookState> parse_hook_state(std::string_view json) {
  const nlohmann::json document = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  HookState state;
  for (const auto& [name, text] : {std::pair("id", &state.id), std::pair("bundle", &state.bundle)}) {
    if (!document.is_object() || !document.contains(name) || !document[name].is_string()) {
      return fail(std::errc::invalid_argument, std::string("the state on standard input has no ") + name);
    }
    *text = document[name].get<std::string>();
  }
  if (!state.bundle.starts_with('/')) {
    return fail(std::errc::invalid_argument, "the state on standard input has no absolute bundle");
  }
  return state;
}

}  // namespace hf::oci
