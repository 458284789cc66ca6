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

// Not mknod: the container may have placed symlinks in the path that lead out of its file system.
void add_heal(const ContainerFacts& facts, const Nodes& nodes, Finding& finding) {
  if (std::ranges::any_of(nodes, [](const NodeState* node) { return node->owed->device.has_value(); })) {
    finding.cure.push_back("holdfast heal " + shell_name_of(facts.container()));
  }
}

// The guard can add nodes and rules to a running container, but no libraries: those are still missing.
void report_completed(const HostFacts& host, const ContainerFacts& facts, Findings& findings) {
  const auto history = host.history.find(facts.container().id.value);
  const bool is_in_bundle =
      std::ranges::any_of(facts.nodes, [&facts](const NodeState& node) { return is_in_spec(facts, *node.owed); });
  const bool has_libraries = std::ranges::any_of(facts.mounts, [](const container::Mount& mount) {
    return base_name(mount.point).starts_with("libcuda.so") || base_name(mount.point).starts_with("libnvidia-ml.so");
  });
  const bool is_nvidia =
      std::ranges::any_of(facts.nodes, [](const NodeState& node) { return node.owed->device_class == "nvidia"; });
  if (history == host.history.end() || !history->second.is_completed || is_in_bundle || has_libraries || !is_nvidia ||
      !nodes_with(facts, AccessFailure::missing).empty()) {
    return;
  }
  Finding finding = finding_for(facts, "HF-105", Severity::critical,
                                "was to have " + summary_of(facts.entitlement) +
                                    ", but its runtime injected nothing: holdfast added nodes and rules alone");
  finding.evidence.push_back("neither nodes nor rules of it are in " + facts.discovered->spec_file);
  finding.evidence.emplace_back("no driver library is mounted in it");
  finding.cure.emplace_back("start the container again with a GPU runtime: libraries are missing in it");
  findings.push_back(std::move(finding));
}

void report_missing(const HostFacts& host, const ContainerFacts& facts, Findings& findings) {
  const Nodes missing = nodes_with(facts, AccessFailure::missing);
  const Nodes nowhere = nodes_with(facts, AccessFailure::missing_on_host);
  const auto required =
      std::size_t(std::ranges::count_if(facts.nodes, [](const NodeState& node) { return !node.owed->is_rule_only; }));
  const bool all_missing = missing.size() + nowhere.size() == required && required > 1;
  if (!missing.empty()) {
    const bool injected =
        std::ranges::none_of(missing, [&facts](const NodeState* node) { return is_in_spec(facts, *node->owed); });
    Finding finding = all_missing && injected
                          ? finding_for(facts, "HF-105", Severity::critical,
                                        "was to have " + summary_of(facts.entitlement) + ", but nothing was injected")
                          : finding_for(facts, "HF-104", severity_of(missing),
                                        "has no " + list_paths(missing) + ", though the host has it");
    for (const NodeState* node : missing) {
      finding.evidence.push_back(node->owed->path + ": not in the container; owed because " +
                                 join(node->owed->because, "; "));
    }
    if (finding.code == "HF-105") {
      finding.evidence.push_back("neither nodes nor rules of it are in " + facts.discovered->spec_file);
      finding.cure.emplace_back("start the container again: libraries are missing in it as well");
    } else {
      add_heal(facts, missing, finding);
      finding.cure.push_back(grant_command(facts, missing));
    }
    findings.push_back(std::move(finding));
  }
  report_completed(host, facts, findings);
  if (!nowhere.empty()) {
    Finding finding = finding_for(facts, "HF-104", severity_of(nowhere),
                                  "has no " + list_paths(nowhere) + ", and neither has the host");
    for (const NodeState* node : nowhere) {
      finding.evidence.push_back(node->diagnosis.text);
    }
    const bool is_nvidia = nowhere.front()->owed->device_class == "nvidia";
    finding.cure.emplace_back(is_nvidia ? "nvidia-modprobe -u -c 0" : "load the driver of " + list_paths(nowhere));
    findings.push_back(std::move(finding));
  }
}

void report_numbers(const ContainerFacts& facts, Findings& findings) {
  const Nodes wrong = nodes_with(facts, AccessFailure::wrong_driver);
  Nodes moved;
  Nodes dead;
  for (const NodeState* node : nodes_with(facts, AccessFailure::no_driver)) {
    const bool has_moved = node->owed->device && node->seen.device != node->owed->device;
    (has_moved ? moved : dead).push_back(node);
  }
  Nodes stale = wrong;
  stale.insert(stale.end(), moved.begin(), moved.end());
  if (!stale.empty()) {
    Finding finding =
        finding_for(facts, "HF-106", severity_of(stale),
                    "has " + list_paths(stale) + " with stale device numbers: another driver, or none, is behind");
    for (const NodeState* node : stale) {
      finding.evidence.push_back(node->owed->path + ": " + node->diagnosis.text);
    }
    add_heal(facts, stale, finding);
    finding.cure.push_back(grant_command(facts, stale));
    findings.push_back(std::move(finding));
  }
  if (!dead.empty()) {
    Finding finding =
        finding_for(facts, "HF-107", severity_of(dead), "may open " + list_paths(dead) + ", but no driver answers");
    for (const NodeState* node : dead) {
      finding.evidence.push_back(node->owed->path + ": " + node->diagnosis.text);
    }
    const bool is_nvidia = dead.front()->owed->device_class == "nvidia";
    finding.cure.emplace_back(is_nvidia ? "modprobe nvidia && nvidia-modprobe -u -c 0" : "load the driver");
    findings.push_back(std::move(finding));
  }
}

struct FailureFinding {
  AccessFailure failure;
  const char* code;
  const char* verdict;  // follows the paths
  const char* cure;
};

std::string remount_command(const ContainerFacts& facts, const NodeState& node) {
  const container::Mount* mount = mount_over(facts.mounts, node.owed->path);
  // This runs the host's mount program in the container's namespace; nsenter would run the container's own as root.
  return "mount -N " + std::to_string(facts.container().init.value) + " -o remount,bind,dev " +
         quoted_for_shell(mount == nullptr ? "/dev" : mount->point);
}

void report_others(const HostFacts& host, const ContainerFacts& facts, Findings& findings) {
  const std::vector<FailureFinding> table = {
      {AccessFailure::permission_bits, "HF-108", "owner and mode do not let its user in", ""},
      {AccessFailure::security_module, "HF-109", "a security module refuses", "ausearch -m avc -ts recent"},
      {AccessFailure::nodev_mount, "HF-110", "a mount with nodev is in the way", ""},
      {AccessFailure::driver_refuses, "HF-111", "the driver itself refuses, as it does for an excluded GPU",
       "remove the GPU from NVreg_ExcludedGpus, or give the container another one"},
      {AccessFailure::device_gone, "HF-112", "the device is gone", "nvidia-smi --gpu-reset, or reboot the node"},
      {AccessFailure::initialisation, "HF-113", "the driver cannot initialise the device", "dmesg | grep NVRM"},
      {AccessFailure::busy, "HF-114", "the device is being reset or drained", "wait, then ask again"},
      {AccessFailure::no_device_node, "HF-115", "something else is in the node's place", ""},
      {AccessFailure::unknown, "HF-116", "it cannot be judged", ""},
  };
  for (const FailureFinding& entry : table) {
    const Nodes nodes = nodes_with(facts, entry.failure);
    if (nodes.empty()) {
      continue;
    }
    const Severity severity = entry.failure == AccessFailure::unknown ? Severity::warning : severity_of(nodes);
    Finding finding = finding_for(facts, entry.code, severity,
                                  (entry.failure == AccessFailure::unknown ? "about " : "cannot open ") +
                                      list_paths(nodes) + ": " + entry.verdict);
    for (const NodeState* node : nodes) {
      finding.evidence.push_back(node->owed->path + ": " + node->diagnosis.text);
    }
    if (entry.failure == AccessFailure::nodev_mount) {
      finding.cure.push_back(remount_command(facts, *nodes.front()));
    } else if (entry.failure == AccessFailure::permission_bits || entry.failure == AccessFailure::no_device_node) {
      add_heal(facts, nodes, finding);
    } else if (*entry.cure != '\0') {
      finding.cure.emplace_back(entry.cure);
    }
    if (entry.failure == AccessFailure::security_module) {
      finding.cure.emplace_back("setsebool -P container_use_devices on (SELinux)");
    }
    const bool of_driver = entry.failure == AccessFailure::driver_refuses ||
                           entry.failure == AccessFailure::device_gone ||
                           entry.failure == AccessFailure::initialisation;
    for (const nvidia::LogEvent& event : of_driver ? host.log : std::vector<nvidia::LogEvent>()) {
      const bool is_relevant = std::ranges::any_of(nodes, [&](const NodeState* node) {
        const device::Unit* unit = host.inventory.unit_with(node->owed->path);
        return unit != nullptr && !event.pci.empty() && unit->pci.starts_with(event.pci);
      });
      if (is_relevant) {
        finding.evidence.push_back("kernel log: " + event.line);
      }
    }
    findings.push_back(std::move(finding));
  }
}

}  // namespace

void check_nodes(const HostFacts& host, const ContainerFacts& facts, Findings& findings) {
  report_missing(host, facts, findings);
  report_numbers(facts, findings);
  report_others(host, facts, findings);
}

}  // namespace hf::doctor
