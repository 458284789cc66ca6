// Policy: kubelet's static policy as decisions over a State. Where kubelet errs, ours does not: a CPU has one owner,
// reserved CPUs are nobody's, and full-pcpus-only never splits a core.
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

enum class PodBudgets : std::uint8_t { ignored, honoured };  // kubelet: the gate PodLevelResourceManagers

struct Policy {
  const Layout* layout = nullptr;  // outlives the policy
  Options options;
  CpuSet reserved;        // for the system; never anybody's own
  CpuSet reserved_cores;  // every CPU of a core with a reserved one
  PodBudgets budgets = PodBudgets::ignored;
};

// By list, or by amount where the list is empty; 0 of none is allowed here, though kubelet insists on some.
Result<Policy> make_policy(const Layout& layout, const Options& options, const CpuSet& list,
                           std::optional<std::uint32_t> amount);

// Which NUMA nodes an allocation should come from, and where its devices sit.
struct Wish {
  std::optional<std::vector<NumaId>> hint = {};  // the topology manager's; none: no opinion
  std::vector<NumaId> device_nodes = {};         // for prefer-device-numa
};

// A state read from a file, or an empty one, which is filled. Both checks must be passed.
Result<void> start(const Policy& policy, State& state);
Result<void> check_as_kubelet(const Policy& policy, const State& state);  // its rules at a restart, in its words
Result<void> check_owners(const Policy& policy, const State& state);      // what it forgets: CPUs of two pods

CpuSet assignable(const Policy& policy, const State& state);  // to new owners: shared but not reserved

// CPUs of the pod's init containers, which are done when the next one starts; never those of a container that stays,
// nor what others have got meanwhile.
CpuSet reusable(const State& state, const PodAsk& pod);

// In the way the options say, whichever cores it splits.
Result<CpuSet> take(const Policy& policy, const CpuSet& free, std::uint32_t count, Story* story = nullptr);

// `count` CPUs of those: the choice alone, nothing is changed.
Result<CpuSet> choose(const Policy& policy, const CpuSet& allocatable, std::uint32_t count, const Wish& wish,
                      Story* story = nullptr);

// Whether full-pcpus-only lets a container have so many; kubelet's words.
Result<void> check_full_cores(const Policy& policy, const State& state, std::uint32_t count);

// A container's own CPUs, entered into the state. None: it runs in the shared pool.
Result<std::optional<CpuSet>> allocate(const Policy& policy, State& state, const PodAsk& pod,
                                       std::string_view container, const Wish& wish, Story* story = nullptr);

// Of a pod with a budget: all its containers at once.
Result<void> allocate_pod(const Policy& policy, State& state, const PodAsk& pod, const Wish& wish);

// What it gave back to the shared pool: not what other containers of its pod still have.
CpuSet remove(State& state, const Owner& owner);

}  // namespace hf::cpu
