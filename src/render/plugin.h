// Plugin: a PluginReport as JSON (docs/JSON.md).
#pragma once

#include <string>

#include "core/report/plugin_report.h"

namespace hf::report {

std::string render_json(const PluginReport& report);

}  // namespace hf::report
