// Denials: the owed nodes that device rules deny, each with the gate that denies it, sorted by how that came about.
#pragma once

#include <vector>

#include "services/doctor/facts.h"
#include "services/doctor/texts.h"

namespace hf::doctor {

struct Denial {
  const container::NodeState* node = nullptr;
  const container::Gate* gate = nullptr;  // null: the probe was refused, but no gate can be read
};

struct Denials {
  std::vector<Denial> lost;         // the container could open it before
  std::vector<Denial> never_given;  // it could not, since its start
  std::vector<Denial> above;        // a cgroup above the container denies it
};
// None where systemd has moved the container up (HF-117): a grant would widen the cgroup of other containers.
Denials sort_denials(const HostFacts& host, const ContainerFacts& facts);

Nodes nodes_of(const std::vector<Denial>& denials);

// cgroup v1: the lists above the container's own that do not allow the node either, nearest first.
std::vector<const container::V1Limit*> limits_that_deny(const ContainerFacts& facts, const Denial& denial);

// By this time after the start of the first process a runtime has written all of its rules.
inline constexpr std::int64_t kStartSeconds = 2;

}  // namespace hf::doctor
