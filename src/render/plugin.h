// Plugin: what is offered to kubelet as JSON (docs/JSON.md).
#pragma once

#include <string>
#include <vector>

#include "core/report/plugin_report.h"

namespace hf::report {

std::string render_json(const PluginReport& report);
std::string render_json(const std::vector<resource::OfferStatus>& offers);  // a list, without a version of its own

}  // namespace hf::report
