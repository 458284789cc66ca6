#include <algorithm>
#include <optional>

#include "core/base/shell.h"
#include "core/base/text.h"
#include "core/report/verdict.h"
#include "render/time.h"
#include "services/doctor/checks.h"
#include "services/doctor/denials.h"
#include "services/doctor/runtime_matrix.h"
#include "services/doctor/texts.h"

namespace hf::doctor {
namespace {

using container::Gate;
using container::NodeState;
using report::Finding;

std::string load_time_of(const Gate& gate, const ContainerFacts& facts) {
  if (!gate.program || !gate.program->loaded_at) {
    return {};
  }
  const std::int64_t after = *gate.program->loaded_at - facts.container().started_at;
  return ", loaded " + report::render_time(*gate.program->loaded_at) +
         (after > kStartSeconds ? ", " + report::render_age(after) + " after the container started"
                                : ", when the container started");
}

std::string evidence_line(const ContainerFacts& facts, const Denial& denial) {
  const auto& [node, gate] = denial;
  const std::string device = node->owed->device ? to_string(*node->owed->device) : "no numbers";
  const std::string cause = gate == nullptr ? "denied (the probe says so; no gate can be read)"
                                            : name_of(*gate) + " denies it" + load_time_of(*gate, facts);
  return node->owed->path + " (" + device + "): " + cause;
}

// The processes that opened one of the nodes before, each once.
std::vector<std::string> holders_of(const ContainerFacts& facts, const Nodes& nodes) {
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
  return pids;
}

std::vector<std::string> evidence_of(const ContainerFacts& facts, const std::vector<Denial>& denials) {
  std::vector<std::string> lines;
  lines.reserve(denials.size());
  for (const Denial& denial : denials) {
    lines.push_back(evidence_line(facts, denial));
  }
  const bool injected =
      std::ranges::any_of(denials, [&facts](const Denial& denial) { return !is_in_spec(facts, *denial.node->owed); });
  if (injected && facts.discovered->spec) {
    lines.push_back(facts.discovered->spec_file +
                    " has no rule for it: it was, or must be, given behind the runtime's back");
  }
  if (const std::vector<std::string> pids = holders_of(facts, nodes_of(denials)); !pids.empty()) {
    lines.push_back("processes " + join(pids, ", ") + " opened it before and go on using it: no need to restart them");
  }
  return lines;
}

std::vector<std::string> cures_of(const ContainerFacts& facts, const Nodes& nodes) {
  std::vector<std::string> cures;
  if (std::optional<std::string> command = unit_command(facts, nodes)) {
    cures.push_back(*std::move(command));
  }
  cures.push_back(grant_command(facts, nodes));
  if (facts.container().pod && how_update_loses(facts.container())) {
    cures.back() += "   # until the next update; holdfastd keeps it for good";
  }
  return cures;
}

// What the guard has seen: who took one of these nodes, and when. The owner of a gate is only a guess by its form.
const report::History::Loss* recorded_loss(const HostFacts& host, const ContainerFacts& facts, const Nodes& nodes) {
  const auto history = host.history.find(facts.container().id.value);
  if (history == host.history.end() || !history->second.last_loss) {
    return nullptr;
  }
  const std::vector<std::string>& devices = history->second.last_loss->devices;
  const bool is_same = std::ranges::any_of(nodes, [&devices](const NodeState* node) {
    return std::ranges::find(devices, node->owed->path) != devices.end();
  });
  return is_same ? &*history->second.last_loss : nullptr;
}

// " by systemd", or "" where the writer is unknown.
std::string by_writer(const ContainerFacts& facts, const Gate* gate) {
  if (gate != nullptr && !gate->owner.empty()) {
    return " by " + gate->owner;
  }
  return gate != nullptr && gate->list && facts.unit
             ? " by systemd, most likely (cgroup v1 keeps no record, but the unit lacks it)"
             : "";
}

}  // namespace

Findings find_lost_access(const HostFacts& host, const ContainerFacts& facts) {
  const std::vector<Denial> lost = sort_denials(host, facts).lost;
  if (lost.empty()) {
    return {};
  }
  const Nodes nodes = nodes_of(lost);
  const report::History::Loss* const recorded = recorded_loss(host, facts, nodes);
  const std::string when = recorded != nullptr ? " at " + report::render_time(recorded->at) : "";
  const std::string by = recorded != nullptr && !recorded->writer.empty() ? " by " + recorded->writer
                                                                          : by_writer(facts, lost.front().gate);
  Finding finding = finding_about(facts, "HF-101", nodes, "lost the right to open " + list_paths(nodes));
  finding.because = "its device rules were rewritten" + by + when;
  finding.evidence = evidence_of(facts, lost);
  if (recorded != nullptr) {
    finding.evidence.push_back("recorded by holdfastd: holdfast blame " + report::argument_of(facts.container()));
  }
  std::ranges::copy(causes_of_updates(host, facts), std::back_inserter(finding.evidence));
  finding.cure = cures_of(facts, nodes);
  return {finding};
}

Findings find_access_never_given(const HostFacts& host, const ContainerFacts& facts) {
  const std::vector<Denial> never = sort_denials(host, facts).never_given;
  if (never.empty()) {
    return {};
  }
  const Nodes nodes = nodes_of(never);
  Finding finding = finding_about(facts, "HF-102", nodes, "was never given the right to open " + list_paths(nodes));
  finding.evidence = evidence_of(facts, never);
  if (host.sources.nvidia.no_cgroups) {
    finding.evidence.push_back(std::string(nvidia::kSettingsFile) +
                               ": no-cgroups = true keeps NVIDIA's hook from giving it");
  }
  finding.cure = cures_of(facts, nodes);
  return {finding};
}

Findings find_denial_above(const HostFacts& host, const ContainerFacts& facts) {
  const std::vector<Denial> above = sort_denials(host, facts).above;
  if (above.empty()) {
    return {};
  }
  const Nodes nodes = nodes_of(above);
  Finding finding = finding_about(facts, "HF-103", nodes, "cannot open " + list_paths(nodes));
  finding.because = "a cgroup above the container denies it";
  for (const Denial& denial : above) {
    finding.evidence.push_back(evidence_line(facts, denial));
    std::string where = denial.gate->where;
    for (const container::V1Limit* limit : limits_that_deny(facts, denial)) {
      where = limit->where;  // the topmost one: a cgroup cannot allow more than its parent
      finding.evidence.push_back(limit->where + "/devices.list does not allow it either");
    }
    finding.cure.push_back("holdfast grant " + quoted_for_shell("cgroup:" + where) + " '" +
                           to_string(*denial.node->owed->device) + " rw'");
  }
  finding.cure.push_back(grant_command(facts, nodes));
  finding.needs_all_cures = true;
  std::ranges::sort(finding.evidence);
  finding.evidence.erase(std::ranges::unique(finding.evidence).begin(), finding.evidence.end());
  return {finding};
}

}  // namespace hf::doctor
