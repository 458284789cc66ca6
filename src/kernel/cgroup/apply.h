// Apply: carries out plans on the kernel, and verifies that they hold.
#pragma once

#include <chrono>

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/gate/change.h"
#include "core/container/gate/gate.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/filters.h"

namespace hf::kernel {

// Makes one pass over the steps. If is_overtaken() is true of the error, another process has changed the cgroup
// meanwhile and the caller must plan again.
Result<void> carry_out(Filters& filters, const CgroupsOfProcess& cgroups, const container::Plan& plan);

struct Applied {
  container::Plan plan;       // as it was carried out; without steps where the change was in force already
  container::Observed after;  // read again after the change
  bool holds = false;         // the change is in force now; if not, another process has undone it since
  int attempts = 1;
};

// Observes, plans, carries out and observes again. Starts over while other processes change the cgroup in between,
// until `retry_limit` has passed.
Result<Applied> apply(Filters& filters, const CgroupsOfProcess& cgroups, const container::Change& change,
                      std::chrono::milliseconds retry_limit = {});

}  // namespace hf::kernel
