// Rebuild: derives a State from the cpusets of the running containers alone, for when its file is lost.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/cpu/policy.h"
#include "core/cpu/reconcile.h"

namespace hf::cpu {

struct Rebuilt {
  State state;
  std::vector<Skipped> shared;  // containers that seem to have no exclusive CPUs, and why
};

// The CPUs of a container are exclusive where it may have such, no other cpuset contains one of them and none is
// reserved. A container whose cpuset is the whole machine is not managed and is ignored. Fails where the name of an
// owner is unknown: kubelet would regard its CPUs as free.
Result<Rebuilt> rebuild(const Policy& policy, const std::vector<ManagedContainer>& managed_containers);

}  // namespace hf::cpu
