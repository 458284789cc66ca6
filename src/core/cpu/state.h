// State: who has which CPUs. What kubelet keeps in cpu_manager_state.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/cpu/cpu_set.h"

namespace hf::cpu {

struct Owner {
  std::string pod;  // its uid
  std::string container;

  friend auto operator<=>(const Owner&, const Owner&) = default;
};

// CPUs that init containers of the pod that is being admitted had: its next containers may have them again. Never
// saved.
struct Reuse {
  std::string pod;
  CpuSet cpus;

  friend bool operator==(const Reuse&, const Reuse&) = default;
};

struct State {
  CpuSet shared;                       // kubelet's defaultCpuSet: of all containers without cores of their own
  std::map<Owner, CpuSet> entries;     // cores of their own
  std::map<std::string, CpuSet> pods;  // of pods with a budget: what their containers have between them
  Reuse reuse;

  friend bool operator==(const State&, const State&) = default;
};

const CpuSet* find_entry(const State& state, const Owner& owner);
CpuSet cpus_for(const State& state, const Owner& owner);  // its own, or the shared ones
CpuSet cpus_of_pod(const State& state, const std::string& pod, const std::string& but_not_of);
CpuSet given_cpus(const State& state);  // all that are somebody's own
std::vector<Owner> stale_owners(const State& state, const std::vector<Owner>& alive);

}  // namespace hf::cpu
