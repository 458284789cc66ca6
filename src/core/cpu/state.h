// State: which container has which CPUs, as kubelet keeps it in cpu_manager_state.
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

// The CPUs of the init containers of the pod that is being admitted: its next containers may reuse them. Never saved.
struct Reuse {
  std::string pod;
  CpuSet cpus;

  friend bool operator==(const Reuse&, const Reuse&) = default;
};

struct State {
  CpuSet shared;                       // kubelet's defaultCpuSet: for all containers without exclusive CPUs
  std::map<Owner, CpuSet> entries;     // exclusive CPUs; none: they were released by hand
  std::map<std::string, CpuSet> pods;  // of pods with a budget: what their containers have together
  Reuse reuse;

  friend bool operator==(const State&, const State&) = default;
};

const CpuSet* find_entry(const State& state, const Owner& owner);
bool owns_cpus(const State& state, const Owner& owner);
CpuSet cpus_for(const State& state, const Owner& owner);  // its exclusive CPUs, or the shared ones
CpuSet cpus_of_pod(const State& state, const std::string& pod, const std::string& but_not_of);
CpuSet given_cpus(const State& state);  // all that have an owner
std::vector<Owner> stale_owners(const State& state, const std::vector<Owner>& alive);

}  // namespace hf::cpu
