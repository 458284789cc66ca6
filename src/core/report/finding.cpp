#include "core/report/finding.h"

#include <algorithm>
#include <array>

namespace hf::report {
namespace {

// The properties that finding.h asks for.
constexpr unsigned kUndecided = 1;
constexpr unsigned kDenied = 2;
constexpr unsigned kRisk = 4;
constexpr unsigned kAccess = 8;
constexpr unsigned kHostsFault = 16;
constexpr unsigned kRules = 32;
constexpr unsigned kUnconfirmed = 64;

struct CodeProperties {
  std::string_view code;
  unsigned properties;
};

// Of containers; all other codes have none. Not the host's fault is what root of the container can do to its own file
// system: nodes that are missing, replaced, moved, hidden or closed. Nor a pod without a runtime class, and what could
// not be determined.
constexpr std::array<CodeProperties, 21> kCodes = {{
    {"HF-101", kDenied | kAccess | kRules | kHostsFault},
    {"HF-102", kAccess | kRules},
    {"HF-103", kAccess | kRules | kHostsFault},
    {"HF-104", kAccess},
    {"HF-106", kAccess},
    {"HF-107", kAccess | kHostsFault},
    {"HF-108", kAccess},
    {"HF-109", kAccess},
    {"HF-110", kAccess},
    {"HF-111", kAccess | kHostsFault},
    {"HF-112", kAccess | kHostsFault},
    {"HF-113", kAccess | kHostsFault},
    {"HF-114", kAccess},
    {"HF-115", kAccess},
    {"HF-116", kAccess | kUndecided},
    {"HF-125", kUnconfirmed},
    {"HF-128", kHostsFault},
    {"HF-201", kRisk},
    {"HF-202", kRisk},
    {"HF-203", kRisk},
    {"HF-204", kRisk},
}};

bool has(std::string_view code, unsigned property) {
  const auto* const found = std::ranges::find(kCodes, code, &CodeProperties::code);
  return found != kCodes.end() && (found->properties & property) != 0;
}

}  // namespace

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

bool is_undecided(const Finding& finding) { return has(finding.code, kUndecided); }

bool is_denied(const Finding& finding) { return has(finding.code, kDenied); }

bool is_about_risk(const Finding& finding) { return finding.severity > Severity::note && has(finding.code, kRisk); }

bool is_about_access(std::string_view code) { return has(code, kAccess); }

bool is_hosts_fault(std::string_view code) { return has(code, kHostsFault); }

bool is_about_rules(std::string_view code) { return has(code, kRules); }

bool is_unconfirmed_request(std::string_view code) { return has(code, kUnconfirmed); }

bool is_hidden(const Finding& finding) {
  return finding.severity == Severity::note && !is_unconfirmed_request(finding.code);
}

}  // namespace hf::report
