#include <algorithm>

#include "core/base/shell.h"
#include "services/doctor/checks.h"
#include "services/doctor/texts.h"

namespace hf::doctor {
namespace {

using container::AccessFailure;
using report::Finding;
using report::Severity;

struct Refusal {
  AccessFailure failure;
  const char* code;
  const char* because;
  std::vector<std::string> cure = {};
};

// One finding about all nodes with this failure.
Findings find_refused(const ContainerFacts& facts, const Refusal& refusal) {
  const Nodes nodes = nodes_with(facts, refusal.failure);
  if (nodes.empty()) {
    return {};
  }
  Finding finding = finding_about(facts, refusal.code, nodes, "cannot open " + list_paths(nodes));
  finding.because = refusal.because;
  finding.evidence = diagnosis_lines(nodes);
  finding.cure = refusal.cure;
  return {finding};
}

// heal replaces the node by one with the right numbers, owner and mode.
Findings find_curable_by_heal(const ContainerFacts& facts, const Refusal& refusal) {
  Findings findings = find_refused(facts, refusal);
  Nodes nodes = nodes_with(facts, refusal.failure);
  std::erase_if(nodes, [](const container::NodeState* node) { return !can_be_recreated(*node); });
  const std::optional<std::string> command = heal_command(facts, nodes);
  if (!findings.empty() && command) {
    findings.front().cure.push_back(*command);
  }
  return findings;
}

// The driver's refusals are also in the kernel log.
Findings find_refused_by_driver(const HostFacts& host, const ContainerFacts& facts, const Refusal& refusal) {
  Findings findings = find_refused(facts, refusal);
  for (Finding& finding : findings) {
    for (const nvidia::LogEvent& event : host.log) {
      const bool is_relevant = std::ranges::any_of(finding.nodes, [&](const std::string& path) {
        const device::Unit* unit = host.inventory.unit_with(path);
        return unit != nullptr && is_about(event, *unit);
      });
      if (is_relevant) {
        finding.evidence.push_back("kernel log: " + event.line);
      }
    }
  }
  return findings;
}

std::string remount_command(const ContainerFacts& facts, const std::string& path) {
  const container::Mount* mount = mount_over(facts.mounts, path);
  // This runs the host's mount program in the container's namespace; nsenter would run the container's own as root.
  return "mount -N " + std::to_string(facts.container().init.value) + " -o remount,bind,dev " +
         quoted_for_shell(mount == nullptr ? "/dev" : mount->point);
}

}  // namespace

Findings find_refusing_permission_bits(const HostFacts& /*host*/, const ContainerFacts& facts) {
  return find_curable_by_heal(facts,
                              {AccessFailure::permission_bits, "HF-108", "owner and mode do not let its user in"});
}

Findings find_refusing_security_module(const HostFacts& /*host*/, const ContainerFacts& facts) {
  Findings findings = find_refused(facts, {AccessFailure::security_module,
                                           "HF-109",
                                           "a security module refuses",
                                           {"setsebool -P container_use_devices on (SELinux)"}});
  for (Finding& finding : findings) {
    finding.evidence.emplace_back("the audit log has the denial: ausearch -m avc -ts recent");
  }
  return findings;
}

Findings find_nodev_mount(const HostFacts& /*host*/, const ContainerFacts& facts) {
  Findings findings = find_refused(facts, {AccessFailure::nodev_mount, "HF-110", "a mount with nodev is in the way"});
  for (Finding& finding : findings) {
    finding.cure.push_back(remount_command(facts, finding.nodes.front()));
  }
  return findings;
}

Findings find_refusing_driver(const HostFacts& host, const ContainerFacts& facts) {
  return find_refused_by_driver(host, facts,
                                {AccessFailure::driver_refuses,
                                 "HF-111",
                                 "the driver itself refuses, as it does for an excluded GPU",
                                 {"remove the GPU from NVreg_ExcludedGpus, or give the container another one"}});
}

Findings find_gone_device(const HostFacts& host, const ContainerFacts& facts) {
  return find_refused_by_driver(
      host, facts,
      {AccessFailure::device_gone, "HF-112", "the device is gone", {"nvidia-smi --gpu-reset, or reboot the node"}});
}

Findings find_failed_initialisation(const HostFacts& host, const ContainerFacts& facts) {
  return find_refused_by_driver(
      host, facts,
      {AccessFailure::initialisation, "HF-113", "the driver cannot initialise the device", {"dmesg | grep NVRM"}});
}

Findings find_busy_device(const HostFacts& /*host*/, const ContainerFacts& facts) {
  return find_refused(
      facts, {AccessFailure::busy, "HF-114", "the device is being reset or drained", {"wait, then ask again"}});
}

Findings find_other_file_in_place(const HostFacts& /*host*/, const ContainerFacts& facts) {
  return find_curable_by_heal(facts,
                              {AccessFailure::no_device_node, "HF-115", "something else is in the node's place"});
}

Findings find_unclear_access(const HostFacts& /*host*/, const ContainerFacts& facts) {
  const Nodes nodes = nodes_with(facts, AccessFailure::unknown);
  if (nodes.empty()) {
    return {};
  }
  Finding finding = finding_about(facts, "HF-116", nodes, "about " + list_paths(nodes));
  finding.because = "it cannot be judged";
  finding.severity = Severity::warning;
  finding.evidence = diagnosis_lines(nodes);
  return {finding};
}

}  // namespace hf::doctor
