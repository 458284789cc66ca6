// Config: /etc/holdfast/config.yaml.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/device/device_class.h"
#include "kernel/host.h"

namespace hf::config {

inline constexpr const char* kFile = "/etc/holdfast/config.yaml";

struct Config {
  device::DeviceClasses classes;         // the file's own first, then the built-in ones it does not replace
  std::vector<std::string> state_roots;  // where runc or crun was told to keep its state (--root)
};

Result<Config> parse_config(std::string_view text);
Result<Config> read_config(const kernel::Host& host);  // the defaults where there is no file

}  // namespace hf::config
