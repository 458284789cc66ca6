#include "services/doctor/denials.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/bpf/producer.h"

namespace hf::doctor {
namespace {

using container::Gate;
using container::NodeState;

bool denies(const Gate& gate, const NodeState& node) {
  return gate.meaning && node.owed->device && !gate.meaning->allows(request_for(*node.owed));
}

// Does the gate belong to an ancestor cgroup, rather than to this container or a cgroup the runtime created for it?
bool is_above(const Gate& gate, const container::Container& container) {
  if (gate.is_own || container::CgroupPath{container.cgroup}.is_root()) {
    return !gate.is_own;
  }
  return !gate.cgroup || !container::is_within(gate.cgroup->text, container.cgroup);
}

// The first gate that denies the node; one of the container's own comes before those above.
const Gate* find_denier(const ContainerFacts& facts, const NodeState& node) {
  const Gate* found = nullptr;
  for (const Gate& gate : facts.observed.gates) {
    if (!denies(gate, node)) {
      continue;
    }
    if (!is_above(gate, facts.container())) {
      return &gate;
    }
    found = found == nullptr ? &gate : found;
  }
  return found;
}

// Is the writer neither the container's runtime nor NVIDIA's hook nor systemd, which may all write rules at its start?
bool is_written_by_another(const Gate& gate, const container::Container& container) {
  if (gate.owner == bpf::kOurName) {
    return true;
  }
  return gate.owner != "systemd" && !gate.owner.empty() && container.runtime && !is_run_by(container, gate.owner) &&
         gate.owner != "libnvidia-container";
}

// Kernel: program ids ascend in the order of loading.
bool came_after_one_that_allows(const ContainerFacts& facts, const NodeState& node, const Gate& denier) {
  return std::ranges::any_of(facts.observed.gates, [&](const Gate& gate) {
    return gate.program && denier.program && gate.program->id && denier.program->id &&
           *gate.program->id < *denier.program->id && !is_above(gate, facts.container()) && gate.meaning &&
           !denies(gate, node);
  });
}

// v2: access was lost if the denying program is not the runtime's, or was loaded after the container's start or after
// another program on the same cgroup that allows it. v1 keeps no times: a device that the bundle or a hook allowed and
// that is denied now was lost.
bool was_lost(const HostFacts& host, const ContainerFacts& facts, const Denial& denial) {
  const auto& [node, gate] = denial;
  if (gate != nullptr &&
      (is_written_by_another(*gate, facts.container()) || came_after_one_that_allows(facts, *node, *gate))) {
    return true;
  }
  if (gate != nullptr && gate->program && gate->program->loaded_at) {
    return *gate->program->loaded_at > facts.container().started_at + kStartSeconds;
  }
  const bool by_hook = node->owed->sources.contains(container::Source::nvidia_hook);
  return !node->owed->is_completion && !(by_hook && host.sources.nvidia.no_cgroups);
}

}  // namespace

Denials sort_denials(const HostFacts& host, const ContainerFacts& facts) {
  Denials denials;
  if (is_moved_up(facts.container())) {
    return denials;
  }
  for (const NodeState* node : nodes_with(facts, container::AccessFailure::cgroup_denies)) {
    const Denial denial{node, find_denier(facts, *node)};
    const bool is_by_ancestor = denial.gate != nullptr &&
                                (is_above(*denial.gate, facts.container()) || !limits_that_deny(facts, denial).empty());
    const bool is_lost = !is_by_ancestor && was_lost(host, facts, denial);
    (is_by_ancestor ? denials.above : is_lost ? denials.lost : denials.never_given).push_back(denial);
  }
  return denials;
}

Nodes nodes_of(const std::vector<Denial>& denials) {
  Nodes nodes;
  nodes.reserve(denials.size());
  for (const Denial& denial : denials) {
    nodes.push_back(denial.node);
  }
  return nodes;
}

std::vector<const container::V1Limit*> limits_that_deny(const ContainerFacts& facts, const Denial& denial) {
  std::vector<const container::V1Limit*> limits;
  if (denial.gate == nullptr || !denial.gate->list || !denial.node->owed->device) {
    return limits;
  }
  for (const container::V1Limit& limit : facts.observed.v1_above) {
    if (!hides_exceptions(limit.list) && !meaning(limit.list).allows({*denial.node->owed->device, kReadWrite})) {
      limits.push_back(&limit);
    }
  }
  return limits;
}

}  // namespace hf::doctor
