#include "core/report/finding.h"

namespace hf::report {

std::string to_string(Severity severity) {
  switch (severity) {
    case Severity::note: return "note";
    case Severity::warning: return "warning";
    case Severity::critical: return "critical";
  }
  return "";
}

}  // namespace hf::report
