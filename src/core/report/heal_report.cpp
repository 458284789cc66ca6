#include "core/report/heal_report.h"

#include <algorithm>

namespace hf::report {

bool HealReport::is_all_well() const { return std::ranges::all_of(lines, &Line::is_well); }

}  // namespace hf::report
