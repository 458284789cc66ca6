#include <algorithm>

#include "core/base/text.h"
#include "services/doctor/checks.h"
#include "services/doctor/texts.h"

namespace hf::doctor {
namespace {

using report::Finding;
using report::Severity;

std::string owner_of(const kube::Allocation& allocation) { return allocation.pod_uid + "/" + allocation.container; }

bool hands_out(const kube::Allocation& allocation, std::string_view path) {
  return std::ranges::find(allocation.devices, path, &kube::PluginDevice::container_path) != allocation.devices.end();
}

// The ids of an allocation that no plugin registers.
std::vector<std::string> unregistered_ids(const kube::Checkpoint& checkpoint, const kube::Allocation& allocation) {
  std::vector<std::string> ids = allocation.ids;
  if (const auto registered = checkpoint.registered.find(allocation.resource);
      registered != checkpoint.registered.end()) {
    std::erase_if(ids, [&](const std::string& id) {
      return std::ranges::find(registered->second, id) != registered->second.end();
    });
  }
  return ids;
}

}  // namespace

Findings find_plugin_without_uvm(const HostFacts& host, const host::Census& /*census*/) {
  if (!host.sources.checkpoint || !host.inventory.drivers.character.contains("nvidia-uvm")) {
    return {};
  }
  Finding finding =
      finding_for_host("HF-311", Severity::critical, "the device plugin hands out GPUs without /dev/nvidia-uvm");
  finding.because = "it started before the driver was complete";
  for (const kube::Allocation& allocation : host.sources.checkpoint->allocations) {
    if (allocation.resource.starts_with("nvidia.com/") && hands_out(allocation, "/dev/nvidiactl") &&
        !hands_out(allocation, "/dev/nvidia-uvm")) {
      finding.evidence.push_back("allocation of " + allocation.resource + " to " + owner_of(allocation) +
                                 " has no /dev/nvidia-uvm (" + host::checkpoint_file(host.sources) + ")");
    }
  }
  if (finding.evidence.empty()) {
    return {};
  }
  finding.nodes = {"/dev/nvidia-uvm"};
  finding.cure.emplace_back(
      "restart the device plugin, then the pods: kubectl -n kube-system rollout restart daemonset "
      "nvidia-device-plugin-daemonset");
  return {finding};
}

Findings find_unregistered_devices(const HostFacts& host, const host::Census& /*census*/) {
  if (!host.sources.checkpoint) {
    return {};
  }
  Finding finding =
      finding_for_host("HF-317", Severity::warning, "kubelet has given out devices that no plugin registers any more");
  finding.because = "such pods fail when they start again";
  for (const kube::Allocation& allocation : host.sources.checkpoint->allocations) {
    const std::vector<std::string> ids = unregistered_ids(*host.sources.checkpoint, allocation);
    if (!ids.empty()) {
      finding.evidence.push_back(allocation.resource + " " + join(ids, ", ") + " of " + owner_of(allocation));
    }
  }
  if (finding.evidence.empty()) {
    return {};
  }
  finding.cure.emplace_back(
      "start the device plugin before kubelet admits pods; delete pods with UnexpectedAdmissionError");
  return {finding};
}

Findings find_unreadable_checkpoint(const HostFacts& host, const host::Census& /*census*/) {
  if (host.sources.checkpoint_problem.empty()) {
    return {};
  }
  Finding finding = finding_for_host("HF-318", Severity::warning, "kubelet's record of devices cannot be read");
  finding.because = "in pods nothing can be believed";
  finding.evidence.push_back(host.sources.checkpoint_problem);
  finding.cure.emplace_back("run holdfast as root; kubelet replaces a damaged file at its next allocation");
  return {finding};
}

Findings find_engine_without_nri(const HostFacts& host, const host::Census& /*census*/) {
  const bool is_wanted = host.config.nri.is_enabled;
  if (is_wanted ? host.has_nri : !host.config.cpus.manages) {
    return {};
  }
  Finding finding = finding_for_host("HF-319", is_wanted ? Severity::warning : Severity::note,
                                     is_wanted ? "no engine offers NRI" : "NRI is not used");
  finding.because = is_wanted ? "containers get their CPUs and whole device sets only after they have started"
                              : "containers get their CPUs only after they have started";
  finding.evidence.push_back(std::string("nri.enabled is ") + (is_wanted ? "true" : "false") + ", and there is " +
                             (host.has_nri ? "the socket " : "no socket ") + host.config.nri.socket);
  if (!host.has_nri) {
    finding.cure.emplace_back(
        "switch it on in the engine and restart it. containerd 1.7: [plugins.\"io.containerd.nri.v1.nri\"] disable = "
        "false in /etc/containerd/config.toml (containerd 2 has it on, 1.6 has none). CRI-O: [crio.nri] enable_nri = "
        "true in /etc/crio/crio.conf");
  }
  if (!is_wanted) {
    finding.cure.emplace_back("nri: {enabled: true} in /etc/holdfast/config.yaml, then systemctl reload holdfastd");
  }
  finding.needs_all_cures = true;
  return {finding};
}

}  // namespace hf::doctor
