#include <algorithm>
#include <map>
#include <set>

#include "core/base/text.h"
#include "services/doctor/checks.h"
#include "services/doctor/texts.h"

namespace hf::doctor {
namespace {

using report::Finding;
using report::Severity;

std::string numbers_of(const device::Device& device) {
  return std::to_string(device.major) + ":" + std::to_string(device.minor);
}

// What is stale in a spec: lines of evidence by the node's path.
std::map<std::string, std::set<std::string>> stale_nodes(const HostFacts& host, const cdi::Spec& spec) {
  std::map<std::string, std::set<std::string>> stale;
  for (const container::ContainerEdits* edits : host.sources.cdi.effective_edits(spec)) {
    for (const container::NodeEdit& node : edits->nodes) {
      const device::Node* on_host = host.inventory.find(node.on_host());
      const std::optional<device::Device> current = on_host == nullptr ? std::nullopt : on_host->numbers();
      if (node.device && current && (node.device->major != current->major || node.device->minor != current->minor)) {
        stale[node.path].insert(node.path + ": the spec has " + numbers_of(*node.device) + ", now it is " +
                                numbers_of(*current));
      }
    }
  }
  return stale;
}

Findings find_broken_specs(const HostFacts& host) {
  Findings findings;
  for (const cdi::BrokenSpec& broken : host.sources.cdi.broken) {
    Finding& finding = findings.emplace_back(
        finding_for_host("HF-310", Severity::warning, "the CDI spec " + broken.file + " cannot be used"));
    finding.evidence.push_back(broken.why);
    finding.cure.push_back("repair or remove " + broken.file);
  }
  return findings;
}

Finding finding_about_missing_files(const HostFacts& host) {
  constexpr std::size_t kMostShown = 8;
  Finding finding =
      finding_for_host("HF-310", Severity::warning, "a CDI spec mounts files that this host does not have");
  std::set<std::string> affected;
  for (const HostFacts::MissingFile& missing : host.missing_cdi_files) {
    affected.insert(missing.spec);
    if (finding.evidence.size() < kMostShown) {
      finding.evidence.push_back(missing.path + " (" + missing.spec + ")");
    }
  }
  if (host.missing_cdi_files.size() > kMostShown) {
    finding.evidence.push_back("and " + std::to_string(host.missing_cdi_files.size() - kMostShown) + " more");
  }
  std::set<std::string> cures;
  for (const cdi::Spec& spec : host.sources.cdi.specs) {
    if (affected.contains(spec.file)) {
      cures.insert(cdi::recreate_command(spec));
    }
  }
  finding.cure.assign(cures.begin(), cures.end());
  finding.needs_all_cures = true;  // each of them is for another spec
  return finding;
}

}  // namespace

Findings find_stale_cdi_specs(const HostFacts& host, const host::Census& /*census*/) {
  Findings findings;
  for (const cdi::Spec& spec : host.sources.cdi.specs) {
    const std::map<std::string, std::set<std::string>> stale = stale_nodes(host, spec);
    if (stale.empty()) {
      continue;
    }
    Finding& finding = findings.emplace_back(
        finding_for_host("HF-308", Severity::critical, "the CDI spec " + spec.file + " is stale"));
    finding.because = "new containers get nodes with wrong numbers";
    for (const auto& [path, lines] : stale) {
      finding.nodes.push_back(path);
      finding.evidence.insert(finding.evidence.end(), lines.begin(), lines.end());
    }
    std::ranges::sort(finding.evidence);
    finding.cure.push_back(cdi::recreate_command(spec));
  }
  return findings;
}

Findings find_shadowed_cdi_specs(const HostFacts& host, const host::Census& /*census*/) {
  using Pair = std::pair<std::string, std::string>;  // the hidden spec, and the one that hides it
  std::map<std::pair<Pair, bool>, std::vector<std::string>> shadowed;
  for (const cdi::Registry::Shadow& shadow : host.sources.cdi.shadows) {
    shadowed[{{shadow.hidden, shadow.by}, shadow.is_conflict}].push_back(shadow.device);
  }
  Findings findings;
  for (const auto& [relation, devices] : shadowed) {
    const auto& [specs, is_conflict] = relation;
    Finding& finding = findings.emplace_back(finding_for_host(
        "HF-309", is_conflict ? Severity::warning : Severity::note,
        "the CDI spec " + specs.first + (is_conflict ? " conflicts with " : " is hidden by ") + specs.second));
    finding.evidence.push_back("devices: " + join(devices, ", "));
    finding.cure.emplace_back("keep one spec per device");
  }
  return findings;
}

Findings find_unusable_cdi_specs(const HostFacts& host, const host::Census& /*census*/) {
  Findings findings = find_broken_specs(host);
  if (!host.missing_cdi_files.empty()) {
    findings.push_back(finding_about_missing_files(host));
  }
  return findings;
}

}  // namespace hf::doctor
