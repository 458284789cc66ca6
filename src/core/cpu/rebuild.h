// Rebuild: a State from nothing but the cpusets of the containers that run, for when the file with it is lost.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/cpu/policy.h"
#include "core/cpu/reconcile.h"

namespace hf::cpu {

struct Rebuilt {
  State state;
  std::vector<Skipped> shared;  // residents that seem to have no CPUs of their own, and why
};

// A container has CPUs of its own where it may have any, nobody else's cpuset has one of them and none is reserved.
// Containers on the whole machine are nobody's to manage, and count for nothing. Refused where an owner's name is not
// known: kubelet would take his CPUs for free.
Result<Rebuilt> rebuild(const Policy& policy, const std::vector<Resident>& residents);

}  // namespace hf::cpu
