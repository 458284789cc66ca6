#include <algorithm>

#include "core/base/text.h"
#include "core/base/version.h"
#include "core/container/gate/shield.h"
#include "services/doctor/checks.h"
#include "services/doctor/runtime_matrix.h"
#include "services/doctor/texts.h"

namespace hf::doctor {
namespace {

using container::NodeState;
using device::Access;
using report::Finding;
using report::Severity;

constexpr Access kReadWrite = Access::read | Access::write;
constexpr const char* kStartAgain =
    "start it again with its devices in the bundle: by CDI, or with --device for each node";

// Owed devices that the container may open now.
Nodes allowed_nodes(const ContainerFacts& facts) {
  Nodes nodes;
  for (const NodeState& node : facts.nodes) {
    if (node.owed->device && node.gates.kind == container::Answer::Kind::allow) {
      nodes.push_back(&node);
    }
  }
  return nodes;
}

// A unit may name a BPF program of crun's instead of devices: that program allows what the bundle allows.
Nodes not_in_unit(const ContainerFacts& facts) {
  Nodes nodes = allowed_nodes(facts);
  const bool by_program = facts.unit && !facts.unit->pinned.empty();
  std::erase_if(nodes, [&](const NodeState* node) {
    return facts.unit_table.allows({*node->owed->device, kReadWrite}) && (!by_program || is_in_spec(facts, *node->owed));
  });
  return nodes;
}

// Describes what will cause the update: kubelet's static CPU manager, or a resize.
std::string trigger_of(const HostFacts& host, const ContainerFacts& facts) {
  if (!facts.container().pod) {
    return {};
  }
  if (host.cpu_state && host.cpu_state->policy == "static") {
    const std::optional<Version> version = parse_version(host.kubelet_version);
    const bool is_old = version && *version < *parse_version("1.22");
    return std::string(
               "kubelet's static CPU manager is active (/var/lib/kubelet/cpu_manager_state): it updates the "
               "container ") +
           (is_old ? "every 10 seconds"
                   : "after its start, when an exclusive pod comes or goes, and after each restart of kubelet");
  }
  const std::optional<Version> version = parse_version(host.kubelet_version);
  if (version && *version >= *parse_version("1.33")) {
    return "kubelet " + host.kubelet_version + " can resize pods in place, and that is an update";
  }
  return {};
}

void report_unit(const HostFacts& host, const ContainerFacts& facts, Findings& findings) {
  if (!facts.unit) {
    return;
  }
  const Nodes nodes = not_in_unit(facts);
  Nodes left_out;
  Nodes lacking;
  for (const NodeState* node : nodes) {
    const bool unlinked = !host.linked.contains(*node->owed->device);
    const bool by_runc =
        leaves_out_unlinked_devices(facts.container().runtime) && unlinked && is_in_spec(facts, *node->owed);
    (by_runc ? left_out : lacking).push_back(node);
  }
  const auto describe = [&facts](Finding& finding, const Nodes& affected) {
    for (const NodeState* node : affected) {
      const bool by_program = facts.unit_table.allows({*node->owed->device, kReadWrite});
      finding.evidence.push_back(node->owed->path + " (" + to_string(*node->owed->device) + "): allowed now, but " +
                                 (by_program ? "not in " + facts.unit->pinned.front() + ", which systemd attaches again"
                                             : "in no DeviceAllow of " + facts.container().scope));
    }
    finding.evidence.push_back("read in " + join(facts.unit->files, ", "));
    const std::string command = facts.unit->pinned.empty() ? unit_command(facts, affected) : std::string();
    finding.cure.push_back(command.empty() ? kStartAgain : command);
  };
  if (!lacking.empty()) {
    Finding finding =
        finding_for(facts, "HF-201", Severity::warning,
                    "will lose " + list_paths(lacking) + " at the next daemon-reload: systemd's unit does not list it");
    describe(finding, lacking);
    findings.push_back(std::move(finding));
  }
  if (!left_out.empty()) {
    Finding finding = finding_for(facts, "HF-202", Severity::warning,
                                  "will lose " + list_paths(left_out) + " at the next daemon-reload: runc " +
                                      facts.container().runtime.version + " left it out of the unit");
    describe(finding, left_out);
    for (const NodeState* node : left_out) {
      const device::Device device = *node->owed->device;
      finding.evidence.push_back("no link /dev/char/" + std::to_string(device.major) + ":" +
                                 std::to_string(device.minor));
    }
    findings.push_back(std::move(finding));
  }
}

void report_update(const HostFacts& host, const ContainerFacts& facts, Findings& findings) {
  const std::optional<Loss> loss = how_update_loses(facts.container());
  if (!loss || !facts.discovered->spec || facts.spec_allows_all) {
    return;
  }
  const bool by_unit = loss->keeps == Loss::Keeps::unit && facts.unit;
  const bool by_bundle = loss->keeps == Loss::Keeps::bundle;
  Nodes nodes = by_unit ? not_in_unit(facts) : allowed_nodes(facts);
  if (by_bundle) {
    std::erase_if(nodes, [&facts](const NodeState* node) { return is_in_spec(facts, *node->owed); });
  }
  const std::string trigger = trigger_of(host, facts);
  if (nodes.empty() || (by_unit && trigger.empty())) {
    return;  // HF-201 reports it: a reload and an update have the same effect
  }
  const std::string when = trigger.empty() ? "at the next update of its resources" : "by kubelet's next update";
  const container::ShieldCover cover = container::cover_of(facts.entitlement, facts.observed);
  Finding finding =
      host.has_guard || cover.is_on
          ? finding_for(facts, trigger.empty() ? "HF-203" : "HF-204", Severity::note,
                        "has its rules rewritten " + when + ", and keeps " + list_paths(nodes) +
                            (cover.is_on ? ": the shield holds it open" : ": holdfastd gives it back at once"))
          : finding_for(facts, trigger.empty() ? "HF-203" : "HF-204", Severity::warning,
                        "will lose " + list_paths(nodes) + " " + when);
  finding.evidence.push_back(loss->why);
  if (const auto history = host.history.find(facts.container().id.value); history != host.history.end()) {
    finding.evidence.push_back("its rules were rewritten " + std::to_string(history->second.rewrites) +
                               " times so far (holdfast blame " + shell_name_of(facts.container()) + ")");
  }
  if (by_bundle) {
    finding.evidence.push_back(facts.discovered->spec_file + " has no rule for " + list_paths(nodes));
  }
  if (!trigger.empty()) {
    finding.evidence.push_back(trigger);
  }
  const std::string command = by_unit && facts.unit->pinned.empty() ? unit_command(facts, nodes) : std::string();
  const bool by_bundle_or_unit = by_bundle || by_unit;
  finding.cure.push_back(!command.empty() ? command : by_bundle_or_unit ? kStartAgain : loss->cure);
  findings.push_back(std::move(finding));
}

}  // namespace

void check_risk(const HostFacts& host, const ContainerFacts& facts, Findings& findings) {
  report_unit(host, facts, findings);
  report_update(host, facts, findings);
}

}  // namespace hf::doctor
