#include "adapters/engine/podman_config.h"

#include "adapters/engine/toml_registration.h"

namespace hf::engine {
namespace {

TomlPieces pieces() {
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
  const TomlPieces ours = pieces();
  TomlValues entry = {{ours.entry, "[ " + toml_string(registration.program) + " ]"}};
  if (*found && (*found)->program == registration.program) {
    entry = moved(TRY(read_toml(text)), ours.entry, ours.entry);
  }
  return Edited{TRY(add_pieces(text, ours, entry, registration.standing)), {}};
}

Result<std::string> remove_from_podman(std::string_view text, Before before) {
  return remove_pieces(text, pieces(), before);
}

Result<std::optional<Registered>> find_in_podman(std::string_view text) { return find_pieces(text, pieces()); }

}  // namespace hf::engine
