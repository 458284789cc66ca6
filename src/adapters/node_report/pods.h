// Pods: what `kubectl get pods -o json` prints.
#pragma once

#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/report/fleet_member.h"

namespace hf::node_report {

inline constexpr std::size_t kMostPodBytes = std::size_t(256) << 20U;  // of a list; a pod has some 10 KiB

Result<std::vector<report::PodEntry>> parse_pods(std::string_view text);
Result<report::PodEntry> parse_pod(std::string_view text);

}  // namespace hf::node_report
