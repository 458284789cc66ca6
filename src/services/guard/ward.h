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
#include "core/device/table.h"
#include "kernel/sweep.h"

namespace hf::guard {

struct Ward {
  container::Container container;
  Shared<container::Entitlement> owed;
  Shared<container::Entitlement> healed;         // the part of it that the policy lets us give back: mostly all
  container::Mode mode = container::Mode::heal;  // the strongest of its classes
  std::int64_t started_ticks = 0;
  // Its own cgroup, and the one its first process has moved to below, where that is another: on v1 only the list of the
  // latter counts, on v2 the programs of both.
  std::vector<kernel::CgroupsPtr> cgroups;
  std::vector<container::NodeState> nodes;     // as seen from its seat
  std::vector<std::string> missing_in_unit;    // paths that systemd's unit does not list: the next reload takes them
  std::vector<container::OwedNode> to_harden;  // of those, what the policy lets us tell systemd
  std::vector<container::NodeState> to_mend;   // nodes that the policy lets us make anew
  bool has_unit = false;
  std::vector<device::Table> likely;  // what a writer may put in force: of the bundle, of systemd's unit
};

// Owned by whoever looks at a survey: the loop, the recorder, the surveyor.
using WardPtr = std::shared_ptr<const Ward>;

}  // namespace hf::guard
