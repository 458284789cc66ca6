// Ward: a container under guard, as the last survey found it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/shared.h"
#include "core/container/container.h"
#include "core/container/entitlement.h"
#include "core/container/policy.h"
#include "core/container/seat.h"
#include "kernel/container_handle.h"

namespace hf::guard {

struct Ward {
  container::Container container;
  Shared<container::Entitlement> owed;
  Shared<container::Entitlement> healed;         // the part of it that the policy lets us give back: mostly all
  container::Mode mode = container::Mode::heal;  // the strongest of its classes
  kernel::ContainerHandlePtr handle;
  std::vector<std::string> missing_in_unit;    // paths that systemd's unit does not list: the next reload takes them
  std::vector<container::OwedNode> to_harden;  // of those, what the policy lets us tell systemd
  bool has_unit = false;
  std::uint64_t met_at = 0;  // nanoseconds of CLOCK_MONOTONIC, when it was first found
  container::Pid creator;  // of one that is being created: the runtime's process, whose hooks may still give it devices

  // The cgroups whose rules may be changed: none where its first process was moved out of its own.
  [[nodiscard]] const std::vector<kernel::CgroupsPtr>& cgroups() const { return handle->own(); }
};

// Ids are not unique: engines have namespaces.
inline std::string key_of(const Ward& ward) {
  const container::Container& it = ward.container;
  return it.id.value + " " + std::to_string(it.init.value) + " " + std::to_string(it.started_ticks);
}

// Owned by whoever looks at a survey: the loop, the recorder, the surveyor.
using WardPtr = std::shared_ptr<const Ward>;

}  // namespace hf::guard
