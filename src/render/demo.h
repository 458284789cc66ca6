// Demo: the demo as text and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/report/demo_report.h"

namespace hf::report {

std::string render_text(const DemoReport& report);  // the summary, the verdict first
std::string render_json(const DemoReport& report);
std::string head_of_timeline();
std::string render_line(const DemoMoment& moment);

}  // namespace hf::report
