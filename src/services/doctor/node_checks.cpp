#include <algorithm>

#include "core/base/text.h"
#include "services/doctor/checks.h"
#include "services/doctor/texts.h"

namespace hf::doctor {
namespace {

using container::AccessFailure;
using container::NodeState;
using report::Finding;
using report::Severity;

bool is_nvidia(const NodeState& node) { return node.owed->device_class == "nvidia"; }

// Are all owed nodes missing, and those that the host has not in the bundle either?
bool is_nothing_injected(const ContainerFacts& facts) {
  const Nodes missing = nodes_with(facts, AccessFailure::missing);
  const std::size_t nowhere = nodes_with(facts, AccessFailure::missing_on_host).size();
  const auto required =
      std::size_t(std::ranges::count_if(facts.nodes, [](const NodeState& node) { return !node.owed->is_rule_only; }));
  return !missing.empty() && missing.size() + nowhere == required && required > 1 &&
         std::ranges::none_of(missing, [&facts](const NodeState* node) { return is_in_spec(facts, *node->owed); });
}

// The guard can add nodes and rules to a running container, but no libraries: those are still missing.
bool is_completed_without_libraries(const HostFacts& host, const ContainerFacts& facts) {
  const auto history = host.history.find(facts.container().id.value);
  if (history == host.history.end() || !history->second.is_completed) {
    return false;
  }
  const bool is_in_bundle =
      std::ranges::any_of(facts.nodes, [&facts](const NodeState& node) { return is_in_spec(facts, *node.owed); });
  const bool has_libraries = std::ranges::any_of(facts.mounts, [](const container::Mount& mount) {
    return base_name(mount.point).starts_with("libcuda.so") || base_name(mount.point).starts_with("libnvidia-ml.so");
  });
  return !is_in_bundle && !has_libraries && std::ranges::any_of(facts.nodes, is_nvidia) &&
         nodes_with(facts, AccessFailure::missing).empty();
}

std::vector<std::string> owed_lines(const Nodes& missing) {
  std::vector<std::string> lines;
  for (const NodeState* node : missing) {
    lines.push_back(node->owed->path + ": not in the container; owed because " + join(node->owed->because, "; "));
  }
  return lines;
}

std::vector<std::string> heal_cure(const ContainerFacts& facts, const Nodes& nodes) {
  std::optional<std::string> command = heal_command(facts, nodes);
  return command ? std::vector{*std::move(command)} : std::vector<std::string>();
}

// What is missing besides nodes: the driver's libraries, which only a runtime can mount.
std::string start_again(const ContainerFacts& facts) {
  if (facts.container().pod) {
    return "recreate the pod with a runtimeClassName whose runtime gives GPUs (" + setup_command(facts) +
           " prints one): the driver's libraries are missing in the container as well";
  }
  return "start the container again with the runtime holdfast (" +
         std::string(facts.container().engine == "docker" ? "docker run --runtime holdfast --gpus all …"
                                                          : "or a CDI device: --device nvidia.com/gpu=all") +
         "): the driver's libraries are missing in it as well";
}

// No driver has the node's number, because the device has another one now.
bool has_moved(const NodeState& node) { return node.owed->device && node.seen.device != node.owed->device; }

}  // namespace

Findings find_missing_nodes(const HostFacts& /*host*/, const ContainerFacts& facts) {
  Findings findings;
  const Nodes missing = nodes_with(facts, AccessFailure::missing);
  if (!missing.empty() && !is_nothing_injected(facts)) {
    Finding& finding = findings.emplace_back(
        finding_about(facts, "HF-104", missing, "has no " + list_paths(missing) + ", though the host has it"));
    finding.evidence = owed_lines(missing);
    finding.cure = heal_cure(facts, missing);
  }
  const Nodes nowhere = nodes_with(facts, AccessFailure::missing_on_host);
  if (!nowhere.empty()) {
    Finding& finding = findings.emplace_back(
        finding_about(facts, "HF-104", nowhere, "has no " + list_paths(nowhere) + ", and neither has the host"));
    for (const NodeState* node : nowhere) {
      finding.evidence.push_back(node->diagnosis.text);
    }
    finding.cure.emplace_back(is_nvidia(*nowhere.front()) ? "nvidia-modprobe -u -c 0"
                                                          : "load the driver of " + list_paths(nowhere));
  }
  return findings;
}

Findings find_nothing_injected(const HostFacts& host, const ContainerFacts& facts) {
  const std::string what = "was to have " + summary_of(facts.entitlement) + ", but ";
  const std::string not_in_bundle = "neither nodes nor rules of it are in " + facts.discovered->spec_file;
  if (is_nothing_injected(facts)) {
    const Nodes missing = nodes_with(facts, AccessFailure::missing);
    Finding finding = finding_about(facts, "HF-105", missing, what + "nothing was injected");
    finding.severity = Severity::critical;
    finding.evidence = owed_lines(missing);
    finding.evidence.push_back(not_in_bundle);
    finding.cure.push_back(start_again(facts));
    return {finding};
  }
  if (is_completed_without_libraries(host, facts)) {
    Finding finding = finding_for(facts, "HF-105", Severity::critical, what + "its runtime injected nothing");
    finding.because = "holdfast added nodes and rules alone";
    finding.evidence = {not_in_bundle, "no driver library is mounted in it"};
    finding.cure.push_back(start_again(facts));
    return {finding};
  }
  return {};
}

Findings find_stale_nodes(const HostFacts& /*host*/, const ContainerFacts& facts) {
  Nodes stale = nodes_with(facts, AccessFailure::wrong_driver);
  std::ranges::copy_if(nodes_with(facts, AccessFailure::no_driver), std::back_inserter(stale),
                       [](const NodeState* node) { return has_moved(*node); });
  if (stale.empty()) {
    return {};
  }
  Finding finding = finding_about(facts, "HF-106", stale, "has " + list_paths(stale) + " with stale device numbers");
  finding.because = "another driver, or none, is behind";
  finding.evidence = diagnosis_lines(stale);
  finding.cure = heal_cure(facts, stale);
  return {finding};
}

Findings find_unloaded_driver(const HostFacts& /*host*/, const ContainerFacts& facts) {
  Nodes dead = nodes_with(facts, AccessFailure::no_driver);
  std::erase_if(dead, [](const NodeState* node) { return has_moved(*node); });
  if (dead.empty()) {
    return {};
  }
  Finding finding = finding_about(facts, "HF-107", dead, "may open " + list_paths(dead) + ", but no driver answers");
  finding.evidence = diagnosis_lines(dead);
  finding.cure.emplace_back(is_nvidia(*dead.front()) ? "modprobe nvidia && nvidia-modprobe -u -c 0"
                                                     : "load the driver");
  return {finding};
}

}  // namespace hf::doctor
