#include <algorithm>

#include "core/base/text.h"
#include "core/base/version.h"
#include "core/container/guard/shield.h"
#include "core/report/verdict.h"
#include "services/doctor/checks.h"
#include "services/doctor/runtime_matrix.h"
#include "services/doctor/texts.h"

namespace hf::doctor {
namespace {

using container::NodeState;
using report::Finding;
using report::Severity;

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
    return facts.unit_table.allows({*node->owed->device, kReadWrite}) &&
           (!by_program || is_in_spec(facts, *node->owed));
  });
  return nodes;
}

// The devices that systemd's unit lacks, by whose doing.
struct UnitLacks {
  Nodes left_out_by_runc;
  Nodes others;
};
UnitLacks compare_with_unit(const HostFacts& host, const ContainerFacts& facts) {
  UnitLacks lacks;
  for (const NodeState* node : facts.unit ? not_in_unit(facts) : Nodes()) {
    const bool by_runc = leaves_out_unlinked_devices(facts.container()) && !host.linked.contains(*node->owed->device) &&
                         is_in_spec(facts, *node->owed);
    (by_runc ? lacks.left_out_by_runc : lacks.others).push_back(node);
  }
  return lacks;
}

bool is_healed(const HostFacts& host, const ContainerFacts& facts, const NodeState* node) {
  return host.has_guard &&
         mode_for(host.config.policy, facts.container(), node->owed->device_class) >= container::Mode::heal;
}

// Why these devices stay usable when the rules are rewritten. Absent: they are lost.
std::optional<std::string> why_kept(const HostFacts& host, const ContainerFacts& facts, const Nodes& nodes) {
  if (container::cover_of(facts.entitlement, facts.observed).is_on) {
    return "the shield holds it open";
  }
  const bool are_healed =
      std::ranges::all_of(nodes, [&](const NodeState* node) { return is_healed(host, facts, node); });
  return are_healed ? std::optional<std::string>("holdfastd gives it back at once") : std::nullopt;
}

// when: "at the next daemon-reload".
Finding finding_about_loss(const HostFacts& host, const ContainerFacts& facts, const char* code, const Nodes& nodes,
                           const std::string& when) {
  const std::string paths = list_paths(nodes);
  const std::optional<std::string> kept = why_kept(host, facts, nodes);
  Finding finding = finding_about(
      facts, code, nodes,
      kept ? "has its rules rewritten " + when + ", and keeps " + paths : "will lose " + paths + " " + when);
  finding.because = kept.value_or("");
  finding.severity = kept ? Severity::note : Severity::warning;
  return finding;
}

Finding finding_about_unit(const HostFacts& host, const ContainerFacts& facts, const char* code, const Nodes& nodes,
                           const std::string& why) {
  Finding finding = finding_about_loss(host, facts, code, nodes, "at the next daemon-reload");
  if (finding.because.empty()) {
    finding.because = why;
  }
  for (const NodeState* node : nodes) {
    const bool by_program = facts.unit_table.allows({*node->owed->device, kReadWrite});
    finding.evidence.push_back(node->owed->path + " (" + to_string(*node->owed->device) + "): allowed now, but " +
                               (by_program ? "not in " + facts.unit->pinned.front() + ", which systemd attaches again"
                                           : "in no DeviceAllow of " + *facts.container().unit));
  }
  finding.evidence.push_back("read in " + join(facts.unit->files, ", "));
  finding.cure.push_back(
      (facts.unit->pinned.empty() ? unit_command(facts, nodes) : std::nullopt).value_or(kStartAgain));
  return finding;
}

// What will make kubelet update the container's resources.
enum class Trigger : std::uint8_t { unknown, polling_cpu_manager, cpu_manager, resize };

Trigger trigger_of(const HostFacts& host, const ContainerFacts& facts) {
  constexpr Version kFirstWithoutPolling{1, 22, 0};
  constexpr Version kFirstWithResize{1, 33, 0};
  if (!facts.container().pod) {
    return Trigger::unknown;
  }
  const std::optional<Version> kubelet = parse_version(host.kubelet_version);
  if (host.cpu_state && host.cpu_state->policy == "static") {
    return kubelet && *kubelet < kFirstWithoutPolling ? Trigger::polling_cpu_manager : Trigger::cpu_manager;
  }
  return kubelet && *kubelet >= kFirstWithResize ? Trigger::resize : Trigger::unknown;
}

std::string describe(Trigger trigger, const HostFacts& host) {
  const std::string by_cpu_manager = "kubelet's static CPU manager is active (" + host.config.kube.root_dir +
                                     "/cpu_manager_state): it updates the container ";
  switch (trigger) {
    case Trigger::unknown: return {};
    case Trigger::polling_cpu_manager: return by_cpu_manager + "every 10 seconds";
    case Trigger::cpu_manager:
      return by_cpu_manager + "after its start, when an exclusive pod comes or goes, and after each restart of kubelet";
    case Trigger::resize: return "kubelet " + host.kubelet_version + " can resize pods in place, and that is an update";
  }
  return {};
}

// The devices that the next update of the container's resources takes away.
struct UpdateRisk {
  Loss loss;
  Nodes nodes;
  Trigger trigger = Trigger::unknown;
  bool by_unit = false;  // an update puts the unit's list in force
};

std::optional<UpdateRisk> foresee_update(const HostFacts& host, const ContainerFacts& facts) {
  const std::optional<Loss> loss = how_update_loses(facts.container());
  if (!loss || !facts.discovered->spec || facts.spec_allows_all) {
    return std::nullopt;
  }
  UpdateRisk risk{*loss, {}, trigger_of(host, facts), loss->kept == Loss::Kept::unit && facts.unit};
  risk.nodes = risk.by_unit ? not_in_unit(facts) : allowed_nodes(facts);
  if (loss->kept == Loss::Kept::bundle) {
    std::erase_if(risk.nodes, [&facts](const NodeState* node) { return is_in_spec(facts, *node->owed); });
  }
  // Without a trigger HF-201 reports it: a reload and an update have the same effect.
  const bool is_reported = risk.by_unit && risk.trigger == Trigger::unknown;
  return risk.nodes.empty() || is_reported ? std::nullopt : std::optional(risk);
}

std::vector<std::string> evidence_of(const HostFacts& host, const ContainerFacts& facts, const UpdateRisk& risk) {
  std::vector<std::string> lines = {risk.loss.why};
  if (const auto history = host.history.find(facts.container().id.value); history != host.history.end()) {
    lines.push_back("its rules were rewritten " + std::to_string(history->second.rewrites) +
                    " times so far (holdfast blame " + report::argument_of(facts.container()) + ")");
  }
  if (risk.loss.kept == Loss::Kept::bundle) {
    lines.push_back(facts.discovered->spec_file + " has no rule for " + list_paths(risk.nodes));
  }
  if (risk.trigger != Trigger::unknown) {
    lines.push_back(describe(risk.trigger, host));
  }
  return lines;
}

// A pod has no option --device: its devices come from the device plugin and its runtime.
std::vector<std::string> cures_for_pod(const HostFacts& host, const ContainerFacts& facts, const UpdateRisk& risk) {
  std::vector<std::string> cures;
  if (!host.has_guard) {
    cures.emplace_back(
        "systemctl start holdfastd && systemctl enable holdfastd   # gives it back at once, for every pod, without a "
        "restart; "
        "start first: enable reloads systemd");
  } else if (!why_kept(host, facts, risk.nodes)) {
    cures.emplace_back(
        "guard.mode: heal in /etc/holdfast/config.yaml, or a rule for this pod, then: systemctl reload holdfastd   # "
        "it does not repair this container now");
  }
  if (is_run_by(facts.container(), "runc") && risk.loss.kept == Loss::Kept::bundle) {
    cures.emplace_back("upgrade runc to 1.1 or newer, whose updates leave device rules alone, and recreate the pod");
  }
  if (!risk.loss.cure.empty()) {  // this runtime takes devices away that its config lists, too
    return cures;
  }
  cures.push_back(setup_command(facts) + ", then runtimeClassName: holdfast in the pod: its config lists the devices");
  cures.emplace_back(
      "a device plugin that returns device nodes or CDI names: holdfast-kube, or NVIDIA's with PASS_DEVICE_SPECS=true "
      "or "
      "DEVICE_LIST_STRATEGY=cdi-cri");
  return cures;
}

// What keeps the devices of this container alone: a unit that lists them, a runtime without the fault.
std::optional<std::string> cure_of_container(const ContainerFacts& facts, const UpdateRisk& risk) {
  if (risk.by_unit) {
    return facts.unit->pinned.empty() ? unit_command(facts, risk.nodes) : std::nullopt;
  }
  return risk.loss.cure.empty() ? std::nullopt : std::optional(risk.loss.cure);
}

// In a pod what keeps the devices of all pods comes first: the next pod has a unit of its own.
std::vector<std::string> cures_of(const HostFacts& host, const ContainerFacts& facts, const UpdateRisk& risk) {
  std::vector<std::string> cures =
      facts.container().pod ? cures_for_pod(host, facts, risk) : std::vector<std::string>();
  if (const std::optional<std::string> own = cure_of_container(facts, risk)) {
    cures.push_back(*own);
  }
  return cures.empty() ? std::vector<std::string>{kStartAgain} : cures;
}

Finding finding_about_update(const HostFacts& host, const ContainerFacts& facts, const char* code,
                             const UpdateRisk& risk) {
  Finding finding = finding_about_loss(
      host, facts, code, risk.nodes,
      risk.trigger == Trigger::unknown ? "at the next update of its resources" : "by kubelet's next update");
  finding.evidence = evidence_of(host, facts, risk);
  finding.cure = cures_of(host, facts, risk);
  return finding;
}

}  // namespace

std::vector<std::string> causes_of_updates(const HostFacts& host, const ContainerFacts& facts) {
  const std::optional<Loss> loss = how_update_loses(facts.container());
  const Trigger trigger = trigger_of(host, facts);
  if (!loss || trigger == Trigger::unknown) {
    return {};
  }
  return {loss->why, describe(trigger, host)};
}

Findings find_devices_not_in_unit(const HostFacts& host, const ContainerFacts& facts) {
  const Nodes nodes = compare_with_unit(host, facts).others;
  if (nodes.empty()) {
    return {};
  }
  return {finding_about_unit(host, facts, "HF-201", nodes, "systemd's unit does not list it")};
}

Findings find_devices_runc_left_out(const HostFacts& host, const ContainerFacts& facts) {
  const Nodes nodes = compare_with_unit(host, facts).left_out_by_runc;
  if (nodes.empty()) {
    return {};
  }
  Finding finding = finding_about_unit(host, facts, "HF-202", nodes,
                                       title_of(*facts.container().runtime) + " left it out of the unit");
  for (const NodeState* node : nodes) {
    const device::Device device = *node->owed->device;
    finding.evidence.push_back("no link /dev/char/" + std::to_string(device.major) + ":" +
                               std::to_string(device.minor));
  }
  return {finding};
}

Findings find_loss_at_update(const HostFacts& host, const ContainerFacts& facts) {
  const std::optional<UpdateRisk> risk = foresee_update(host, facts);
  if (!risk || risk->trigger != Trigger::unknown) {
    return {};
  }
  return {finding_about_update(host, facts, "HF-203", *risk)};
}

Findings find_loss_by_kubelet(const HostFacts& host, const ContainerFacts& facts) {
  const std::optional<UpdateRisk> risk = foresee_update(host, facts);
  if (!risk || risk->trigger == Trigger::unknown) {
    return {};
  }
  return {finding_about_update(host, facts, "HF-204", *risk)};
}

}  // namespace hf::doctor
