#include "core/cpu/rebuild.h"

#include <algorithm>

namespace hf::cpu {
namespace {

// "": they are its own.
std::string why_shared(const Policy& policy, const std::vector<Resident>& residents, const Resident& resident) {
  if (!resident.present || resident.present->empty()) {
    return "its cpuset could not be read";
  }
  if (!resident.can_own) {
    return "it is not of a Guaranteed pod";
  }
  const CpuSet& cpus = *resident.present;
  if (!policy.layout->cpus.contains(cpus)) {
    return "its cpuset has CPUs " + to_string(cpus - policy.layout->cpus) + " which this machine has not";
  }
  if (cpus.overlaps(policy.reserved)) {
    return "its cpuset has reserved CPUs " + to_string(cpus & policy.reserved);
  }
  if (cpus == policy.layout->cpus) {
    return "its cpuset is the whole machine";
  }
  for (const Resident& other : residents) {
    const bool is_confined = other.present && *other.present != policy.layout->cpus;  // else nobody manages it
    if (&other != &resident && is_confined && other.present->overlaps(cpus)) {
      return "its CPUs " + to_string(cpus & *other.present) + " are also " + other.owner.pod + "/" +
             other.owner.container + "'s";
    }
  }
  return "";
}

}  // namespace

Result<Rebuilt> rebuild(const Policy& policy, const std::vector<Resident>& residents) {
  Rebuilt rebuilt;
  for (const Resident& resident : residents) {
    if (resident.phase != Phase::running) {
      continue;
    }
    const std::string why = why_shared(policy, residents, resident);
    if (why.empty()) {
      const bool is_new = rebuilt.state.entries.try_emplace(resident.owner, *resident.present).second;
      if (resident.owner.container.empty() || !is_new) {
        return fail(std::errc::invalid_argument, "rebuild: container " + resident.id + " of pod " + resident.owner.pod +
                                                     " has CPUs " + to_string(*resident.present) +
                                                     " of its own, and nothing tells " +
                                                     (is_new ? "its name" : "it from another of its name"));
      }
    } else {
      rebuilt.shared.push_back({resident.owner, resident.id, why});
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
