#include "core/report/cdi_report.h"

#include <algorithm>

namespace hf::report {

bool CdiCheck::is_well() const {
  return std::ranges::all_of(findings, [](const Finding& finding) { return finding.severity == Severity::note; });
}

}  // namespace hf::report
