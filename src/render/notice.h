// Notice: events of pods as text, and what the guard's snapshot says, read back.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/notice/host_state.h"
#include "core/notice/pod_event.h"

namespace hf::notice {

std::string render_message(const PodEvent& event);  // one line of at most 1,024 bytes, as an event's message may be

// The part of a rendered snapshot that the cluster is told. Containers that are owed nothing are left out.
Result<HostState> parse_host_state(std::string_view snapshot);

}  // namespace hf::notice
