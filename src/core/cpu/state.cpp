#include "core/cpu/state.h"

#include <set>

namespace hf::cpu {

const CpuSet* find_entry(const State& state, const Owner& owner) {
  const auto found = state.entries.find(owner);
  return found == state.entries.end() ? nullptr : &found->second;
}

bool owns_cpus(const State& state, const Owner& owner) {
  const CpuSet* const own = find_entry(state, owner);
  return own != nullptr && !own->empty();
}

CpuSet cpus_for(const State& state, const Owner& owner) {
  const CpuSet* own = find_entry(state, owner);
  return own == nullptr ? state.shared : *own;
}

CpuSet cpus_of_pod(const State& state, const std::string& pod, const std::string& but_not_of) {
  CpuSet cpus;
  for (auto at = state.entries.lower_bound({pod, ""}); at != state.entries.end() && at->first.pod == pod; ++at) {
    if (at->first.container != but_not_of) {
      cpus |= at->second;
    }
  }
  return cpus;
}

CpuSet given_cpus(const State& state) {
  CpuSet cpus;
  for (const auto& [owner, own] : state.entries) {
    cpus |= own;
  }
  for (const auto& [pod, own] : state.pods) {
    cpus |= own;
  }
  return cpus;
}

std::vector<Owner> stale_owners(const State& state, const std::vector<Owner>& alive) {
  const std::set<Owner> known(alive.begin(), alive.end());
  std::vector<Owner> stale;
  for (const auto& [owner, cpus] : state.entries) {
    if (!known.contains(owner)) {
      stale.push_back(owner);
    }
  }
  return stale;
}

}  // namespace hf::cpu
