// Settings: the parts of NVIDIA's config.toml that decide which containers may have a GPU, and how they get it.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace hf::nvidia {

inline constexpr const char* kSettingsFile = "/etc/nvidia-container-runtime/config.toml";

struct Settings {
  bool no_cgroups = false;          // nvidia-container-cli.no-cgroups: device nodes without cgroup rules
  bool accepts_environment = true;  // accept-nvidia-visible-devices-envvar-when-unprivileged
  bool accepts_mounts = false;      // accept-nvidia-visible-devices-as-volume-mounts
  std::string mode = "auto";        // nvidia-container-runtime.mode
};

Result<Settings> parse_settings(std::string_view text);

}  // namespace hf::nvidia
