// Status: what is shown of the CPU manager's state: each container's CPUs, and why it lacks what it asks for.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/cpu/policy.h"
#include "core/cpu/reconcile.h"
#include "core/report/cpu_report.h"
#include "host/cpu_tenant.h"

namespace hf::cpus {

struct StatusFacts {
  const std::vector<host::CpuTenant>& tenants;
  const std::vector<cpu::ManagedContainer>& managed;   // of the tenants, in their order
  const std::map<std::string, std::string>& problems;  // by Tenant::id
};

// Without the CPUs that are online.
report::CpuStatus status_of(const cpu::Policy& policy, const cpu::State& state, const StatusFacts& facts);

}  // namespace hf::cpus
