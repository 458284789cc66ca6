#include "adapters/engine/podman_config.h"

#include "adapters/document/text.h"
#include "adapters/engine/toml_registration.h"

namespace hf::engine {
namespace {

using document::in_quotes;
using document::parse_toml;

RegistrationPaths registration_paths() {
  const TomlPath entry = {"engine", "runtimes", kRuntimeName};
  return {entry, entry, {"engine", "runtime"}};
}

}  // namespace

Result<Edited> add_to_podman(std::string_view text, const Registration& registration) {
  TRY(check_program_path(registration.program));
  const Result<std::optional<Registered>> found = find_in_podman(text);
  if (!found) {
    return std::unexpected(found.error());
  }
  const RegistrationPaths ours = registration_paths();
  TomlValues entry = {{ours.entry, "[ " + in_quotes(registration.program) + " ]"}};
  if (*found && (*found)->program == registration.program) {
    entry = rebased(TRY(parse_toml(text)), ours.entry, ours.entry);
  }
  return Edited{TRY(add_registration(text, ours, entry, registration)), {}};
}

Result<std::string> remove_from_podman(std::string_view text, Before before) {
  return remove_registration(text, registration_paths(), before);
}

Result<std::optional<Registered>> find_in_podman(std::string_view text) {
  return find_registration(text, registration_paths());
}

}  // namespace hf::engine
