#include "core/report/finding.h"

#include <algorithm>
#include <array>

namespace hf::report {

std::string to_string(Severity severity) {
  switch (severity) {
    case Severity::note: return "note";
    case Severity::warning: return "warning";
    case Severity::critical: return "critical";
  }
  return "";
}

std::string sentence_of(const Finding& finding) {
  return finding.what + (finding.because.empty() ? "" : ": ") + finding.because;
}

bool is_undecided(const Finding& finding) { return finding.code == "HF-116"; }

bool is_denied(const Finding& finding) { return finding.code == "HF-101"; }

bool is_about_risk(std::string_view code) { return code.starts_with("HF-2"); }

bool is_about_access(std::string_view code) { return code >= "HF-101" && code <= "HF-116" && code != "HF-105"; }

bool is_hosts_fault(std::string_view code) {
  // Not what root of the container can do to its own file system: nodes that are missing, replaced, moved, hidden or
  // closed. Nor a pod without a runtime class, and what could not be determined.
  constexpr std::array<std::string_view, 7> kCodes = {"HF-101", "HF-103", "HF-107", "HF-111",
                                                      "HF-112", "HF-113", "HF-128"};
  return std::ranges::find(kCodes, code) != kCodes.end();
}

bool is_about_rules(std::string_view code) { return code == "HF-101" || code == "HF-102" || code == "HF-103"; }

}  // namespace hf::report
