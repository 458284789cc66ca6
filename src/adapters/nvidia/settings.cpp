#include "adapters/nvidia/settings.h"

#include <sstream>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "core/base/toml.h"

namespace hf::nvidia {

Result<Settings> parse_settings(std::string_view text) {
  if (find_invalid_toml(text)) {
    return fail(std::errc::invalid_argument,
                "parse " + std::string(kSettingsFile) + ": a character that is not valid TOML there");
  }
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return fail(std::errc::invalid_argument,
                "parse " + std::string(kSettingsFile) + ": " + std::string(parsed.error().description()));
  }
  const toml::table& table = parsed.table();
  Settings settings;
  settings.no_cgroups = table["nvidia-container-cli"]["no-cgroups"].value_or(settings.no_cgroups);
  settings.accepts_environment =
      table["accept-nvidia-visible-devices-envvar-when-unprivileged"].value_or(settings.accepts_environment);
  settings.accepts_mounts = table["accept-nvidia-visible-devices-as-volume-mounts"].value_or(settings.accepts_mounts);
  settings.mode = table["nvidia-container-runtime"]["mode"].value_or(settings.mode);
  return settings;
}

}  // namespace hf::nvidia
