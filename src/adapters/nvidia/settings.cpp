#include "adapters/nvidia/settings.h"

#include "adapters/document/toml.h"

namespace hf::nvidia {

Result<Settings> parse_settings(std::string_view text) {
  const Result<document::TomlValues> values = document::parse_toml(text);
  if (!values) {
    return fail(std::errc::invalid_argument,
                "parse " + std::string(kSettingsFile) + ": " + document::explain_no_toml(text));
  }
  const auto read = [&values](const document::TomlPath& path, bool& setting) {
    setting = document::bool_at(*values, path).value_or(setting);
  };
  Settings settings;
  read({"nvidia-container-cli", "no-cgroups"}, settings.no_cgroups);
  read({"accept-nvidia-visible-devices-envvar-when-unprivileged"}, settings.accepts_environment);
  read({"accept-nvidia-visible-devices-as-volume-mounts"}, settings.accepts_mounts);
  settings.mode = document::string_at(*values, {"nvidia-container-runtime", "mode"}).value_or(settings.mode);
  return settings;
}

}  // namespace hf::nvidia
