// NodeDocument: what `holdfast … -o json` prints on a node of the cluster (docs/JSON.md), read back. The node is not
// trusted: sizes are limited, and a document of another schema is refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/report/blame.h"
#include "core/report/cpu_report.h"
#include "core/report/fleet_member.h"
#include "core/report/host_report.h"

namespace hf::node_report {

inline constexpr std::size_t kMostDocument = std::size_t(8) << 20U;  // bytes

// Only the fields that are shown, on one line each and without control characters; long texts are cut.
Result<report::DoctorReport> parse_doctor(std::string_view text);
Result<report::ContainerList> parse_containers(std::string_view text);
Result<std::vector<report::BlameRecord>> parse_blame(std::string_view text);
Result<report::CpuStatus> parse_cpu_status(std::string_view text);

// The document on one line, its keys in their order.
Result<std::string> on_one_line(std::string_view text);
// The same, with only what is about this pod in the list of `ps`, `blame` or `cpu status`.
Result<std::string> on_one_line_about(std::string_view text, const report::PodName& pod);

}  // namespace hf::node_report
