// RuntimeMatrix: which runtimes drop rules that are not in the bundle, and on which event. All entries were measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/container/container.h"

namespace hf::doctor {

// How an update of the container's resources removes access to devices.
struct Loss {
  enum class Kept : std::uint8_t { unit, bundle, nothing };

  Kept kept = Kept::nothing;  // the devices that systemd's unit lists, those of the bundle, or none at all
  std::string why;
  std::string cure;  // set only where nothing is kept
};
// Absent where an update removes no device, or the runtime is unknown.
std::optional<Loss> how_update_loses(const container::Container& container);

// runc 1.1.3 to 1.1.6 leave devices out of systemd's unit whose node has no link under /dev/char.
bool leaves_out_unlinked_devices(const container::Container& container);

}  // namespace hf::doctor
