// Rules: device rules and changes of them as text and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/report/rules_report.h"

namespace hf::report {

std::string render_text(const std::vector<TargetRules>& targets);
std::string render_text(const HostRules& host);
std::string render_text(const TargetDifference& difference);
std::string render_text(const container::Answer& answer);  // one line: allow, deny GATE, unknown WHY
std::string render_text(const ChangeReport& change);
std::string render_json(const std::vector<TargetRules>& targets);  // one object, or a list of them
std::string render_json(const HostRules& host);
std::string render_json(const TargetDifference& difference);
std::string render_json(const std::string& target, const std::vector<AskedQuestion>& questions);
std::string render_json(const ChangeReport& change);
std::string render_json(const std::vector<container::Gate>& gates);  // a list, for documents that hold one

}  // namespace hf::report
