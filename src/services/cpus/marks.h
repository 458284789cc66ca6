// Marks: what the manager must know of containers after a restart, and its state, whose format is kubelet's, has no
// place for. They are files in the same directory. A damaged line is no mark.
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/base/result.h"
#include "core/cpu/cpu_set.h"
#include "core/cpu/state.h"

namespace hf::cpus {

// Containers whose CPUs another program has decided about, by the engine's id, with those CPUs.
using Pinned = std::map<std::string, cpu::CpuSet>;
Pinned read_pinned(const std::string& directory);
Result<void> write_pinned(const std::string& directory, const Pinned& pinned);

// Owners of CPUs that were given by hand, and are not as many as they ask for themselves.
using ByHand = std::set<cpu::Owner>;
ByHand read_by_hand(const std::string& directory);
Result<void> write_by_hand(const std::string& directory, const ByHand& owners);

}  // namespace hf::cpus
