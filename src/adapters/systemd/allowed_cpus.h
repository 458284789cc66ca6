// AllowedCpus: the CPUs of a unit in a drop-in file, which systemd reads at its next reload. systemd is not told: when
// it changes a property of a running unit, it also writes the unit's device rules again.
#pragma once

#include <set>
#include <string>

#include "core/base/result.h"
#include "core/cpu/cpu_set.h"
#include "kernel/files/host.h"

namespace hf::systemd {

// The unit is a scope or a service. Nothing is written that is so already. The file is gone after a reboot.
Result<void> write_allowed_cpus(const kernel::Host& host, const std::string& unit, const cpu::CpuSet& cpus);

Result<void> remove_allowed_cpus(const kernel::Host& host, const std::string& unit);
std::set<std::string> units_with_allowed_cpus(const kernel::Host& host);  // that were written and not removed

}  // namespace hf::systemd
