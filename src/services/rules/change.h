// Change: grants and revokes devices, or only plans it.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/base/run_mode.h"
#include "core/container/gate/change.h"
#include "core/report/rules_report.h"
#include "services/rules/inspect.h"

namespace hf::rules {

Result<report::ChangeReport> change(host::HostOpener& opener, const NamedTarget& named, const container::Change& wanted,
                                    RunMode mode);

}  // namespace hf::rules
