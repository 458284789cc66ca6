#include <algorithm>

#include "core/base/text.h"
#include "core/bpf/producer.h"
#include "core/report/host_report.h"
#include "core/report/rules_report.h"
#include "render/time.h"
#include "services/doctor/checks.h"
#include "services/doctor/texts.h"

namespace hf::doctor {
namespace {

using container::AccessFailure;
using container::Gate;
using container::NodeState;
using device::Access;
using report::Finding;

constexpr Access kReadWrite = Access::read | Access::write;
// By this time after the start of the first process a runtime has written all of its rules.
constexpr std::int64_t kStartSeconds = 2;

bool denies(const Gate& gate, const NodeState& node) {
  const Access access = node.owed->access & kReadWrite;
  return gate.meaning && node.owed->device &&
         !gate.meaning->allows({*node.owed->device, access == Access::none ? kReadWrite : access});
}

// Does the gate belong to an ancestor cgroup, rather than to this container or a cgroup the runtime created for it?
bool is_above(const Gate& gate, const ContainerFacts& facts) {
  const std::string& cgroup = facts.container().cgroup;
  if (gate.is_own || cgroup == "/") {
    return !gate.is_own;
  }
  // The mount point of the hierarchy is unknown, so the cgroup's path may begin anywhere in the directory's path.
  for (std::size_t at = gate.where.find(cgroup); at != std::string::npos; at = gate.where.find(cgroup, at + 1)) {
    if (container::is_within(std::string_view(gate.where).substr(at), cgroup)) {
      return false;
    }
  }
  return true;
}

const Gate* find_denier(const ContainerFacts& facts, const NodeState& node) {
  const Gate* found = nullptr;
  for (const Gate& gate : facts.observed.gates) {
    if (denies(gate, node)) {
      found = found == nullptr || (is_above(*found, facts) && !is_above(gate, facts)) ? &gate : found;
    }
  }
  return found;
}

std::string load_time_of(const Gate& gate, const ContainerFacts& facts) {
  if (!gate.program || !gate.program->loaded_at) {
    return {};
  }
  const std::int64_t after = *gate.program->loaded_at - facts.container().started_at;
  return ", loaded " + report::render_time(*gate.program->loaded_at) +
         (after > kStartSeconds ? ", " + report::render_age(after) + " after the container started"
                                : ", when the container started");
}

// Is the writer neither the container's runtime nor NVIDIA's hook nor systemd, which may all write rules at its start?
bool is_written_by_another(const Gate& gate, const std::string& runtime) {
  if (gate.owner == bpf::kOurName) {
    return true;
  }
  return gate.owner != "systemd" && !gate.owner.empty() && !runtime.empty() && gate.owner != runtime &&
         gate.owner != "libnvidia-container";
}

// Kernel: program ids ascend in the order of loading.
bool came_after_one_that_allows(const ContainerFacts& facts, const NodeState& node, const Gate& denier) {
  return std::ranges::any_of(facts.observed.gates, [&](const Gate& gate) {
    return gate.program && denier.program && gate.program->id && denier.program->id &&
           *gate.program->id < *denier.program->id && !is_above(gate, facts) && gate.meaning && !denies(gate, node);
  });
}

// v2: access was lost if the denying program is not the runtime's, or was loaded after the container's start or after
// another program on the same cgroup that allows it. v1 keeps no times: a device that the bundle or a hook allowed and
// that is denied now was lost.
bool was_lost(const HostFacts& host, const ContainerFacts& facts, const NodeState& node, const Gate* denier) {
  if (denier != nullptr && (is_written_by_another(*denier, facts.container().runtime.name) ||
                            came_after_one_that_allows(facts, node, *denier))) {
    return true;
  }
  if (denier != nullptr && denier->program && denier->program->loaded_at) {
    return *denier->program->loaded_at > facts.container().started_at + kStartSeconds;
  }
  const bool by_hook = node.owed->sources.contains(container::Source::nvidia_hook);
  return !node.owed->is_completion && !(by_hook && host.sources.nvidia.no_cgroups);
}

std::string evidence_line(const ContainerFacts& facts, const NodeState& node, const Gate* denier) {
  const std::string device = node.owed->device ? to_string(*node.owed->device) : "no numbers";
  const std::string cause = denier == nullptr ? "denied (the probe says so; no gate can be read)"
                                              : name_of(*denier) + " denies it" + load_time_of(*denier, facts);
  return node.owed->path + " (" + device + "): " + cause;
}

std::vector<std::string> cures_of(const ContainerFacts& facts, const Nodes& nodes) {
  std::vector<std::string> cures;
  if (const std::string command = unit_command(facts, nodes); !command.empty()) {
    cures.push_back(command);
  }
  cures.push_back(grant_command(facts, nodes));
  return cures;
}

std::string holders_of(const ContainerFacts& facts, const Nodes& nodes) {
  std::vector<std::string> pids;
  for (const NodeState* node : nodes) {
    const auto held = node->owed->device ? facts.holders.pids.find(*node->owed->device) : facts.holders.pids.end();
    for (const container::Pid pid : held == facts.holders.pids.end() ? std::vector<container::Pid>() : held->second) {
      const std::string text = std::to_string(pid.value);
      if (std::ranges::find(pids, text) == pids.end()) {
        pids.push_back(text);
      }
    }
  }
  return pids.empty()
             ? ""
             : "processes " + join(pids, ", ") + " opened it before and go on using it: no need to restart them";
}

std::string writer_of(const ContainerFacts& facts, const Gate* denier) {
  if (denier != nullptr && !denier->owner.empty()) {
    return denier->owner;
  }
  if (denier != nullptr && denier->list && facts.unit) {
    return "systemd, most likely (cgroup v1 keeps no record, but the unit lacks it)";
  }
  return "";
}

}  // namespace

void check_denied(const HostFacts& host, const ContainerFacts& facts, Findings& findings) {
  if (is_moved_up(facts)) {
    return;  // HF-117 reports it: a grant would widen the cgroup of other containers
  }
  Nodes lost;
  Nodes never;
  Nodes above;
  for (const NodeState* node : nodes_with(facts, AccessFailure::cgroup_denies)) {
    const Gate* denier = find_denier(facts, *node);
    const bool by_parent_list = denier != nullptr && denier->list &&
                                std::ranges::any_of(facts.observed.v1_above, [node](const container::V1Limit& limit) {
                                  return node->owed->device && !hides_exceptions(limit.list) &&
                                         !meaning(limit.list).allows({*node->owed->device, kReadWrite});
                                });
    if (denier != nullptr && (is_above(*denier, facts) || by_parent_list)) {
      above.push_back(node);
    } else if (was_lost(host, facts, *node, denier)) {
      lost.push_back(node);
    } else {
      never.push_back(node);
    }
  }
  const auto describe = [&facts](Finding& finding, const Nodes& nodes) {
    for (const NodeState* node : nodes) {
      finding.evidence.push_back(evidence_line(facts, *node, find_denier(facts, *node)));
    }
    const bool injected =
        std::ranges::any_of(nodes, [&facts](const NodeState* node) { return !is_in_spec(facts, *node->owed); });
    if (injected && facts.discovered->spec) {
      finding.evidence.push_back(facts.discovered->spec_file +
                                 " has no rule for it: it was, or must be, given behind the " + "runtime's back");
    }
    if (const std::string held = holders_of(facts, nodes); !held.empty()) {
      finding.evidence.push_back(held);
    }
  };
  if (!lost.empty()) {
    const std::string writer = writer_of(facts, find_denier(facts, *lost.front()));
    Finding finding = finding_for(facts, "HF-101", severity_of(lost),
                                  "lost the right to open " + list_paths(lost) + ": its device rules were rewritten" +
                                      (writer.empty() ? "" : " by " + writer));
    describe(finding, lost);
    finding.cure = cures_of(facts, lost);
    findings.push_back(std::move(finding));
  }
  if (!never.empty()) {
    Finding finding =
        finding_for(facts, "HF-102", severity_of(never), "was never given the right to open " + list_paths(never));
    describe(finding, never);
    if (host.sources.nvidia.no_cgroups) {
      finding.evidence.push_back(std::string(nvidia::kSettingsFile) +
                                 ": no-cgroups = true keeps NVIDIA's hook from giving it");
    }
    finding.cure = cures_of(facts, never);
    findings.push_back(std::move(finding));
  }
  if (!above.empty()) {
    Finding finding = finding_for(facts, "HF-103", severity_of(above),
                                  "cannot open " + list_paths(above) + ": a cgroup above the container denies it");
    for (const NodeState* node : above) {
      const Gate* denier = find_denier(facts, *node);
      finding.evidence.push_back(evidence_line(facts, *node, denier));
      std::string where = denier->where;
      for (const container::V1Limit& limit :
           denier->list ? facts.observed.v1_above : std::vector<container::V1Limit>()) {
        if (!hides_exceptions(limit.list) && !meaning(limit.list).allows({*node->owed->device, kReadWrite})) {
          where = limit.where;  // the topmost one: a cgroup cannot allow more than its parent
          finding.evidence.push_back(limit.where + "/devices.list does not allow it either");
        }
      }
      finding.cure.push_back("holdfast grant " + quoted_for_shell("cgroup:" + where) + " '" +
                             to_string(*node->owed->device) + " rw'");
    }
    finding.cure.push_back(grant_command(facts, above));
    std::ranges::sort(finding.evidence);
    finding.evidence.erase(std::ranges::unique(finding.evidence).begin(), finding.evidence.end());
    findings.push_back(std::move(finding));
  }
}

}  // namespace hf::doctor
