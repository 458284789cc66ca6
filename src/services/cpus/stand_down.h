// Stand down: undoes what would disturb another manager of this host's CPUs, kubelet's for one.
#pragma once

#include <string>

#include "core/base/result.h"
#include "kernel/files/host.h"

namespace hf::cpus {

// Interrupts return to the CPUs that they had, and systemd's units lose the CPUs that a reload would apply. Cpusets
// stay as they are: the other manager writes them. `directory`: of the state.
Result<void> stand_down(const kernel::Host& host, const std::string& directory);

}  // namespace hf::cpus
