// Apply: carries plans out on the kernel, and proves that they hold.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/change.h"
#include "core/container/gate.h"
#include "kernel/cgroup.h"
#include "kernel/filters.h"

namespace hf::kernel {

// One pass over the steps. is_overtaken() tells when somebody else changed the cgroup meanwhile: plan again then.
Result<void> carry_out(Filters& filters, const CgroupsOfProcess& cgroups, const container::Plan& plan);

struct Applied {
  container::Plan plan;       // as it was carried out; no steps: it was so already
  container::Observed after;  // read again
  bool holds = false;         // the change is in force now; if not, somebody has undone it since
  int attempts = 1;
};

// Observe, plan, carry out, observe again; from the start as long as others are faster, for a few seconds.
Result<Applied> apply(Filters& filters, const CgroupsOfProcess& cgroups, const container::Change& change);

}  // namespace hf::kernel
