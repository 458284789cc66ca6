// Snapshot: a snapshot as JSON and as Prometheus metrics.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/report/snapshot.h"

namespace hf::report {

std::string render_json(const Snapshot& snapshot);
std::string render_metrics(const Snapshot& snapshot);  // Prometheus' text format

}  // namespace hf::report
