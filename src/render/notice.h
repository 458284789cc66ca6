// Notice: events of pods as text.
#pragma once

#include <string>

#include "core/notice/pod_event.h"

namespace hf::notice {

std::string render_message(const PodEvent& event);  // one line of at most 1,024 bytes, as an event's message may be

}  // namespace hf::notice
