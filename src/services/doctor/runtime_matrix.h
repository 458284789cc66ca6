// RuntimeMatrix: which runtimes lose rules that stand in no bundle, and at what occasion. Measured, not guessed.
#pragma once

#include <optional>
#include <string>

#include "core/container/container.h"

namespace hf::doctor {

// Why an update of the container's resources would take away devices its bundle does not list; absent where it would
// not, or nothing is known of the runtime.
std::optional<std::string> why_update_loses(const container::Container& container);

// runc 1.1.3 to 1.1.6 leave devices out of systemd's unit whose node has no link under /dev/char.
bool leaves_out_unlinked_devices(const container::Runtime& runtime);

}  // namespace hf::doctor
