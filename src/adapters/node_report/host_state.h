// HostState: what the guard's snapshot says about the host and its containers, read back.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/notice/host_state.h"

namespace hf::node_report {

// The part of a rendered snapshot that the cluster is told. Containers that are owed nothing are left out.
Result<notice::HostState> parse_host_state(std::string_view snapshot);

}  // namespace hf::node_report
