// Heal: what heal found and did, as text and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/report/heal_report.h"

namespace hf::report {

std::string render_text(const HealReport& report);
std::string render_json(const HealReport& report);

}  // namespace hf::report
