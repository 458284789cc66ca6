// ManualHeal: one visit to some containers, or to all, without the daemon.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/run_mode.h"
#include "core/report/heal_report.h"
#include "host/open_host.h"

namespace hf::guard {

// The policy is ignored: the user has asked for a heal. No targets: all containers that are owed something.
Result<report::HealReport> heal_manually(host::OpenHost& open, const std::vector<std::string>& targets, RunMode mode);

}  // namespace hf::guard
