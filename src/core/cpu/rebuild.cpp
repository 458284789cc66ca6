#include "core/cpu/rebuild.h"

#include <algorithm>

namespace hf::cpu {
namespace {

// Why the CPUs of a container are not exclusive; "" where they are.
std::string why_shared(const Policy& policy, const std::vector<ManagedContainer>& managed_containers,
                       const ManagedContainer& managed) {
  if (!managed.present || managed.present->empty()) {
    return "its cpuset could not be read";
  }
  if (!managed.can_own) {
    return "it is not of a Guaranteed pod";
  }
  const CpuSet& cpus = *managed.present;
  if (!policy.layout->cpus.contains(cpus)) {
    return "its cpuset has CPUs " + to_string(cpus - policy.layout->cpus) + " which this machine has not";
  }
  if (cpus.overlaps(policy.reserved)) {
    return "its cpuset has reserved CPUs " + to_string(cpus & policy.reserved);
  }
  if (cpus == policy.layout->cpus) {
    return "its cpuset is the whole machine";
  }
  for (const ManagedContainer& other : managed_containers) {
    const bool is_confined = other.present && *other.present != policy.layout->cpus;  // otherwise it is not managed
    if (&other != &managed && is_confined && other.present->overlaps(cpus)) {
      return "its CPUs " + to_string(cpus & *other.present) + " are also " + other.owner.pod + "/" +
             other.owner.container + "'s";
    }
  }
  return "";
}

}  // namespace

Result<Rebuilt> rebuild(const Policy& policy, const std::vector<ManagedContainer>& managed_containers) {
  Rebuilt rebuilt;
  for (const ManagedContainer& managed : managed_containers) {
    if (managed.phase != Phase::running) {
      continue;
    }
    const std::string why = why_shared(policy, managed_containers, managed);
    if (why.empty()) {
      const bool is_new = rebuilt.state.entries.try_emplace(managed.owner, *managed.present).second;
      if (managed.owner.container.empty() || !is_new) {
        return fail(std::errc::invalid_argument,
                    "rebuild: container " + managed.id + " of pod " + managed.owner.pod + " has CPUs " +
                        to_string(*managed.present) + " of its own, and " +
                        (is_new ? "its name is unknown" : "another container has its name"));
      }
    } else {
      rebuilt.shared.push_back({managed.owner, managed.id, why});
    }
  }
  const CpuSet own = given_cpus(rebuilt.state);
  rebuilt.state.shared = policy.layout->cpus - own - (policy.options.strict_reservation ? policy.reserved : CpuSet());
  if (rebuilt.state.shared.empty()) {
    return fail(std::errc::invalid_argument,
                "rebuild: the containers' own CPUs " + to_string(own) + " leave none to the shared pool");
  }
  TRY(start(policy, rebuilt.state));
  return rebuilt;
}

}  // namespace hf::cpu
