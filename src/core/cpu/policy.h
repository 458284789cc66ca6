// Policy: kubelet's static policy as decisions over a State, without kubelet's faults: a CPU has one owner, reserved
// CPUs are never assigned, and full-pcpus-only never splits a core.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/cpu/layout.h"
#include "core/cpu/options.h"
#include "core/cpu/pod.h"
#include "core/cpu/state.h"
#include "core/cpu/take.h"

namespace hf::cpu {

enum class PodBudgets : std::uint8_t { ignored, honoured };  // kubelet: the feature gate PodLevelResourceManagers

struct Policy {
  const Layout* layout = nullptr;  // outlives the policy
  Options options;
  CpuSet reserved;        // for the system; never assigned to a container
  CpuSet reserved_cores;  // every CPU of a core with a reserved one
  PodBudgets budgets = PodBudgets::ignored;
};

// Reserves CPUs by list, or by amount where the list is empty. Reserving none is allowed here, though not in kubelet.
Result<Policy> make_policy(const Layout& layout, const Options& options, const CpuSet& list,
                           std::optional<std::uint32_t> amount);

// As many CPUs as before are reserved: those of `kept` that this machine has and nobody owns, and others that nobody
// owns, as far as there are some.
Policy keep_reserved(Policy policy, const CpuSet& kept, const CpuSet& owned);

// The NUMA nodes that an allocation should come from, and those of its devices.
struct NumaPreference {
  std::optional<std::vector<NumaId>> hint = {};  // the topology manager's; absent: no preference
  std::vector<NumaId> device_nodes = {};         // for prefer-device-numa
};

// Accepts a state read from a file, or initialises an empty one. Fails where one of the two checks below does.
Result<void> start(const Policy& policy, State& state);
Result<void> check_as_kubelet(const Policy& policy, const State& state);  // its checks and messages at a restart
Result<void> check_owners(const Policy& policy, const State& state);      // what kubelet forgets: CPUs of two pods

CpuSet assignable(const Policy& policy, const State& state);  // the CPUs for new owners: shared but not reserved

// The CPUs of the pod's init containers, which have ended when the next one starts; never those of a container that
// keeps running, nor those that others were assigned meanwhile.
CpuSet reusable(const State& state, const PodRequest& pod);

// Takes CPUs as the options say, even where that splits cores.
Result<CpuSet> take(const Policy& policy, const CpuSet& free, std::uint32_t count, Explanation* explanation = nullptr);

// Chooses `count` of the allocatable CPUs; no state is changed.
Result<CpuSet> choose(const Policy& policy, const CpuSet& allocatable, std::uint32_t count,
                      const NumaPreference& preference, Explanation* explanation = nullptr);

// Fails, with kubelet's message, where full-pcpus-only does not allow a container to have so many.
Result<void> check_full_cores(const Policy& policy, const State& state, std::uint32_t count);

// Assigns exclusive CPUs to a container and enters them into the state. Absent: it runs in the shared pool.
Result<std::optional<CpuSet>> allocate(const Policy& policy, State& state, const PodRequest& pod,
                                       std::string_view container, const NumaPreference& preference,
                                       Explanation* explanation = nullptr);

// Allocates for all containers of a pod with a budget at once.
Result<void> allocate_pod(const Policy& policy, State& state, const PodRequest& pod, const NumaPreference& preference);

// Returns what went back to the shared pool: not the CPUs that other containers of its pod still have.
CpuSet remove(State& state, const Owner& owner);

}  // namespace hf::cpu
