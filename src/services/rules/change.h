// Change: grant and revoke, planned or carried out.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/container/change.h"
#include "core/report/rules_report.h"
#include "services/rules/inspect.h"

namespace hf::rules {

enum class Mode : std::uint8_t { dry_run, carry_out };

Result<report::ChangeReport> change(Node& node, const NamedTarget& target, const container::Change& wanted, Mode mode);

}  // namespace hf::rules
