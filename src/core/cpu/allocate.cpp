#include <algorithm>

#include "core/cpu/policy.h"

namespace hf::cpu {
namespace {

void remember_reuse(State& state, const std::string& pod, const ContainerRequest& container, const CpuSet& cpus) {
  if (state.reuse.pod != pod) {
    state.reuse = {.pod = pod, .cpus = {}};
  }
  if (container.role == ContainerRole::init) {
    state.reuse.cpus |= cpus;
  } else {
    state.reuse.cpus -= cpus;
  }
}

// How the containers of a pod divide its budget.
struct Division {
  std::map<Owner, CpuSet> entries;
  CpuSet left;
};

Result<Division> divide(const Policy& policy, const PodRequest& pod, const CpuSet& budget,
                        const NumaPreference& preference) {
  Division division{.entries = {}, .left = budget};
  std::vector<Owner> sharing;
  for (const ContainerRequest& container : pod.containers) {
    const Owner owner{pod.uid, container.name};
    const std::uint32_t count = exclusive_cpu_count(pod, container);
    if (container.role == ContainerRole::init) {
      division.entries[owner] = count == 0 ? division.left : TRY(choose(policy, division.left, count, preference));
    } else if (count == 0) {
      sharing.push_back(owner);
    } else {
      const CpuSet own = TRY(choose(policy, division.left, count, preference));
      division.entries[owner] = own;
      division.left -= own;
    }
  }
  for (const Owner& owner : sharing) {
    division.entries[owner] = division.left;
  }
  return division;
}

}  // namespace

CpuSet reusable(const State& state, const PodRequest& pod) {
  if (state.reuse.pod != pod.uid) {
    return {};
  }
  CpuSet ended;
  CpuSet staying;
  for (auto at = state.entries.lower_bound({pod.uid, ""}); at != state.entries.end() && at->first.pod == pod.uid;
       ++at) {
    const ContainerRequest* container = find_container(pod, at->first.container);
    (container != nullptr && container->role == ContainerRole::init ? ended : staying) |= at->second;
  }
  return (state.reuse.cpus & (ended | state.shared)) - staying;
}

Result<std::optional<CpuSet>> allocate(const Policy& policy, State& state, const PodRequest& pod,
                                       std::string_view container, const NumaPreference& preference,
                                       Explanation* explanation) {
  const ContainerRequest* request = find_container(pod, container);
  if (request == nullptr) {
    return fail(std::errc::invalid_argument, "pod " + pod.uid + " has no container " + std::string(container));
  }
  const bool is_ignored = pod.cpu_budget && policy.budgets == PodBudgets::ignored;
  const std::uint32_t count = is_ignored ? 0 : exclusive_cpu_count(pod, *request);
  if (count == 0) {
    return std::nullopt;
  }
  const Owner owner{pod.uid, request->name};
  if (const CpuSet* own = find_entry(state, owner)) {
    const CpuSet cpus = *own;
    remember_reuse(state, pod.uid, *request, cpus);
    return cpus;
  }
  TRY(check_full_cores(policy, state, count));
  const CpuSet cpus =
      TRY(choose(policy, assignable(policy, state) | reusable(state, pod), count, preference, explanation));
  state.shared -= cpus;
  state.entries[owner] = cpus;
  remember_reuse(state, pod.uid, *request, cpus);
  return cpus;
}

Result<void> allocate_pod(const Policy& policy, State& state, const PodRequest& pod, const NumaPreference& preference) {
  const std::uint32_t count = exclusive_cpu_count(pod);
  if (!pod.cpu_budget || policy.budgets == PodBudgets::ignored || count == 0 || state.pods.contains(pod.uid)) {
    return {};
  }
  if (pod.containers.empty() || !cpus_of_pod(state, pod.uid, "").empty()) {
    return fail(std::errc::invalid_argument,
                "pod " + pod.uid + (pod.containers.empty() ? " has no containers" : " has CPUs of its own already"));
  }
  TRY(check_budget(pod));
  TRY(check_full_cores(policy, state, count));
  const CpuSet budget = TRY(choose(policy, assignable(policy, state), count, preference));
  Division division = TRY(divide(policy, pod, budget, preference));
  state.shared -= budget;
  state.pods[pod.uid] = budget;
  state.entries.merge(division.entries);
  return {};
}

CpuSet remove(State& state, const Owner& owner) {
  const auto entry = state.entries.find(owner);
  if (entry == state.entries.end()) {
    return {};
  }
  CpuSet freed = entry->second;
  state.entries.erase(entry);
  const CpuSet siblings = cpus_of_pod(state, owner.pod, "");
  const auto budget = state.pods.find(owner.pod);
  if (budget == state.pods.end()) {
    freed -= siblings;
  } else if (siblings.empty()) {
    freed = budget->second;
    state.pods.erase(budget);
  } else {
    freed = {};
  }
  state.shared |= freed;
  return freed;
}

}  // namespace hf::cpu
