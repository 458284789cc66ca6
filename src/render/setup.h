// Setup: what setup did, as text and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/report/setup_report.h"

namespace hf::report {

std::string render_text(const SetupReport& report);
std::string render_json(const SetupReport& report);

}  // namespace hf::report
