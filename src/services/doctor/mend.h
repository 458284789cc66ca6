// Mend: makes the nodes a container is owed anew in its /dev, with the numbers of today.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/report/node_report.h"
#include "services/doctor/facts.h"

namespace hf::doctor {

enum class Mending : std::uint8_t { dry_run, carry_out };

// Of the owed nodes that a word means ("" for all) those that are missing, stale, closed or no nodes. Only what is owed
// is ever made; rules are not touched.
Result<report::MendReport> mend(Machine& machine, const std::string& container, const std::string& device,
                                Mending mending);

}  // namespace hf::doctor
