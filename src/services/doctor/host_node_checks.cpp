#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "services/doctor/checks.h"
#include "services/doctor/runtime_matrix.h"
#include "services/doctor/texts.h"

namespace hf::doctor {
namespace {

using report::Finding;
using report::Severity;

Finding finding_about_node(const device::Node& node, const char* code, Severity severity, const std::string& verdict) {
  Finding finding = finding_for_host(code, severity, node.path + verdict);
  finding.nodes = {node.path};
  return finding;
}

std::string mknod_command(const device::Node& node) {
  const device::Device device = *node.expected;
  return std::string(node.live ? "rm " + node.path + " && " : "") + "mknod -m 666 " + node.path + " " +
         std::string(1, device::kind_character(device.kind)) + " " + std::to_string(device.major) + " " +
         std::to_string(device.minor);
}

std::string link_to(const device::Device& device) {
  return "/dev/char/" + std::to_string(device.major) + ":" + std::to_string(device.minor);
}

// The versions of runc in use that need the links.
std::vector<std::string> versions_that_need_links(const host::Census& census) {
  std::vector<std::string> versions;
  for (const host::DiscoveredContainer& discovered : census.discovered_containers) {
    const container::Container& it = discovered.container;
    const bool concerned = leaves_out_unlinked_devices(it) && it.driver == container::CgroupDriver::systemd;
    if (concerned && std::ranges::find(versions, *it.runtime->version) == versions.end()) {
      versions.push_back(*it.runtime->version);
    }
  }
  return versions;
}

}  // namespace

Findings find_missing_host_nodes(const HostFacts& host, const host::Census& /*census*/) {
  Findings findings;
  for (const device::Node& node : host.inventory.nodes) {
    if (node.live || !node.expected || node.part == device::Part::extra) {
      continue;
    }
    const bool is_nvidia = node.device_class == "nvidia";
    const bool is_needed = is_nvidia && node.part != device::Part::helper;
    Finding& finding =
        findings.emplace_back(finding_about_node(node, "HF-302", is_needed ? Severity::critical : Severity::warning,
                                                 " is missing, though its driver is loaded"));
    finding.evidence.push_back("/proc/devices or /sys has it as " + to_string(*node.expected));
    finding.cure.push_back(is_nvidia && node.part != device::Part::unit ? "nvidia-modprobe -u -c 0"
                                                                        : mknod_command(node));
  }
  return findings;
}

Findings find_stale_host_nodes(const HostFacts& host, const host::Census& /*census*/) {
  Findings findings;
  for (const device::Node& node : host.inventory.nodes) {
    if (!node.is_stale()) {
      continue;
    }
    Finding& finding =
        findings.emplace_back(finding_about_node(node, "HF-303", Severity::critical, " has stale device numbers"));
    const std::string other = driver_with(host.inventory.drivers, node.live->kind, node.live->major);
    finding.evidence.push_back("the node is " + to_string(*node.live) +
                               (other.empty() ? " (no driver)" : " (" + other + ")") + ", the driver is at " +
                               to_string(*node.expected));
    finding.cure.push_back(mknod_command(node));
  }
  return findings;
}

Findings find_missing_links(const HostFacts& host, const host::Census& census) {
  const std::vector<std::string> versions = versions_that_need_links(census);
  Finding finding =
      finding_for_host("HF-304", Severity::warning,
                       "links under /dev/char are missing, and runc " + join(versions, ", ") + " needs them");
  std::vector<std::string> links;
  std::vector<std::string> commands;
  for (const device::Node& node : host.inventory.nodes) {
    const std::optional<device::Device> device = node.numbers();
    if (node.device_class != "nvidia" || !device || host.linked.contains(*device)) {
      continue;
    }
    finding.nodes.push_back(node.path);
    links.push_back(link_to(*device));
    commands.push_back("ln -s " + node.path + " " + links.back());
  }
  if (versions.empty() || links.empty()) {
    return {};
  }
  finding.evidence = {
      "missing: " + join(links, ", "),
      "runc 1.1.3 to 1.1.6 passes only devices with such a link to systemd; the rest is lost at daemon-reload"};
  finding.cure.push_back(join(commands, " && "));
  return {finding};
}

Findings find_stale_lxc_rules(const HostFacts& host, const host::Census& /*census*/) {
  std::map<std::string, std::vector<std::string>> stale_rules;
  for (const HostFacts::HardCodedRule& rule : host.lxc_rules) {
    if (driver_with(host.inventory.drivers, device::Kind::character, rule.major).empty()) {
      stale_rules[rule.file].push_back(rule.rule);
    }
  }
  Findings findings;
  for (const auto& [file, rules] : stale_rules) {
    Finding& finding = findings.emplace_back(
        finding_for_host("HF-316", Severity::warning, "the LXC config " + file + " allows a major that no driver has"));
    finding.evidence = rules;
    finding.cure.push_back("write the current number into " + file + " (see /proc/devices)");
  }
  return findings;
}

}  // namespace hf::doctor
