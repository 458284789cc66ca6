// Once: what would be offered and allocated now, without kubelet and without any change to the host.
#pragma once

#include "adapters/config/config.h"
#include "core/report/plugin_report.h"
#include "kernel/files/host.h"

namespace hf::plugin {

report::PluginReport look_once(const kernel::Host& host, const config::Config& config);

}  // namespace hf::plugin
