#include <algorithm>
#include <map>
#include <set>

#include "core/base/text.h"
#include "services/doctor/checks.h"
#include "services/doctor/runtime_matrix.h"

namespace hf::doctor {
namespace {

using report::Finding;
using report::Severity;

Finding& add(Findings& findings, const char* code, Severity severity, std::string verdict) {
  findings.push_back({code, severity, "host", {}, std::move(verdict), {}, {}});
  return findings.back();
}

std::string mknod_command(const device::Node& node) {
  const device::Device device = *node.expected;
  return std::string(node.live ? "rm " + node.path + " && " : "") + "mknod -m 666 " + node.path + " " +
         std::string(1, device::kind_character(device.kind)) + " " + std::to_string(device.major) + " " +
         std::to_string(device.minor);
}

std::string generate_command(const cdi::Spec& spec) {
  const bool is_nvidia = spec.kind.substr(0, spec.kind.find('/')).ends_with("nvidia.com");
  return is_nvidia ? "holdfast cdi generate --output " + spec.file
                   : "recreate " + spec.file + " with the vendor's tool for " + spec.kind;
}

void check_driver(const HostFacts& host, Findings& findings) {
  const device::DriverState* driver = host.inventory.state_of("nvidia");
  if (driver == nullptr) {
    return;
  }
  const bool has_module = std::ranges::find(driver->modules, "nvidia") != driver->modules.end();
  const bool has_uvm = host.inventory.drivers.character.contains("nvidia-uvm");
  if (driver->version.empty()) {
    Finding& finding =
        add(findings, "HF-301", Severity::critical, "the NVIDIA driver is not loaded, though there is a GPU");
    for (const device::Unit& unit : host.inventory.units) {
      if (unit.device_class == "nvidia") {
        finding.evidence.push_back("PCI " + unit.pci + ": " + unit.health_text);
      }
    }
    finding.evidence.emplace_back(has_module ? "module nvidia is there, but /proc/driver/nvidia/version is not"
                                             : "no /sys/module/nvidia");
    finding.cure.emplace_back("modprobe nvidia");
    return;
  }
  if (!has_uvm) {
    Finding& finding = add(findings, "HF-313", Severity::critical,
                           "the NVIDIA driver is half loaded: nvidia-uvm is missing, CUDA cannot start");
    finding.evidence.emplace_back("/proc/devices has no nvidia-uvm");
    finding.cure.emplace_back("modprobe nvidia-uvm && nvidia-modprobe -u -c 0");
  }
  std::vector<std::string> others;
  bool has_matching = false;
  for (const auto& [file, version] : host.library_files) {
    has_matching = has_matching || version == driver->version;
    if (version != driver->version) {
      others.push_back(file);
    }
  }
  if (!others.empty() && !has_matching) {
    Finding& finding = add(findings, "HF-305", Severity::critical,
                           "the loaded driver is " + driver->version + ", but the libraries are of another version");
    finding.evidence.push_back("libraries: " + join(others, ", "));
    finding.evidence.emplace_back("driver: /proc/driver/nvidia/version");
    finding.cure.emplace_back(
        "drain the node, then: rmmod nvidia_drm nvidia_modeset nvidia_uvm nvidia && modprobe nvidia; or reboot");
  }
  if (!driver->library_error.empty()) {
    Finding& finding =
        add(findings, "HF-315", Severity::critical, "NVIDIA's own library fails on the host: " + driver->library_error);
    if (!driver->meaning.empty()) {
      finding.evidence.push_back("which means: " + driver->meaning);
    }
    finding.cure.emplace_back("holdfast devices");
  }
}

void check_units(const HostFacts& host, Findings& findings) {
  for (const device::Unit& unit : host.inventory.units) {
    if (unit.device_class != "nvidia") {
      continue;
    }
    std::vector<std::string> lines;
    for (const nvidia::LogEvent& event : host.log) {
      const bool is_bad = event.kind != nvidia::LogEvent::Kind::xid || event.xid == 79 || event.xid == 154 ||
                          event.xid == 119 || event.xid == 48 || event.xid == 74 || event.xid == 95;
      if (is_bad && !event.pci.empty() && unit.pci.starts_with(event.pci)) {
        lines.push_back("kernel log: " + event.line);
      }
    }
    const device::DriverState* driver = host.inventory.state_of("nvidia");
    const bool is_reported = driver != nullptr && driver->version.empty();  // HF-301 reports it
    if (unit.lacks_fabric) {
      Finding& finding = add(findings, "HF-314", Severity::critical,
                             "GPU " + unit.name + ": " + unit.health_text + ", CUDA gives 802");
      finding.evidence.push_back("PCI " + unit.pci + ", by NVML");
      finding.cure.emplace_back("systemctl restart nvidia-fabricmanager");
    } else if ((unit.health == device::Health::bad || !lines.empty()) && !is_reported) {
      Finding& finding = add(findings, "HF-306", Severity::critical,
                             "GPU " + unit.name + (unit.health_text.empty() ? " is sick" : ": " + unit.health_text));
      finding.evidence.push_back("PCI " + unit.pci + (unit.model.empty() ? "" : ", " + unit.model));
      finding.evidence.insert(finding.evidence.end(), lines.begin(), lines.end());
      const bool is_excluded = lines.empty() && unit.is_excluded;
      finding.cure.emplace_back(
          is_excluded
              ? "remove it from NVreg_ExcludedGpus and reload the driver, if it is not meant to be excluded"
              : "taint or drain the node, then nvidia-smi --gpu-reset or a reboot; healing rules would not help");
    }
  }
}

void check_nodes(const HostFacts& host, Findings& findings) {
  for (const device::Node& node : host.inventory.nodes) {
    if (node.is_stale()) {
      Finding& finding = add(findings, "HF-303", Severity::critical, node.path + " has stale device numbers");
      const std::string other = driver_with(host.inventory.drivers, node.live->kind, node.live->major);
      finding.evidence.push_back("the node is " + to_string(*node.live) +
                                 (other.empty() ? " (no driver)" : " (" + other + ")") + ", the driver is at " +
                                 to_string(*node.expected));
      finding.cure.push_back(mknod_command(node));
    } else if (!node.live && node.expected && node.part != device::Part::extra) {
      const bool is_nvidia = node.device_class == "nvidia";
      const bool is_needed = is_nvidia && node.part != device::Part::helper;
      Finding& finding = add(findings, "HF-302", is_needed ? Severity::critical : Severity::warning,
                             node.path + " is missing, though its driver is loaded");
      finding.evidence.push_back("/proc/devices or /sys has it as " + to_string(*node.expected));
      finding.cure.push_back(is_nvidia && node.part != device::Part::unit ? "nvidia-modprobe -u -c 0"
                                                                          : mknod_command(node));
    }
  }
}

void check_links(const HostFacts& host, const host::Census& census, Findings& findings) {
  std::vector<std::string> versions;
  for (const host::DiscoveredContainer& discovered : census.discovered_containers) {
    const container::Container& it = discovered.container;
    const bool concerned = leaves_out_unlinked_devices(it.runtime) && it.driver == container::CgroupDriver::systemd;
    if (concerned && std::ranges::find(versions, it.runtime.version) == versions.end()) {
      versions.push_back(it.runtime.version);
    }
  }
  std::vector<std::string> missing;
  std::string command;
  for (const device::Node& node : host.inventory.nodes) {
    const std::optional<device::Device> device = node.numbers();
    if (node.device_class != "nvidia" || !device || host.linked.contains(*device)) {
      continue;
    }
    const std::string link = "/dev/char/" + std::to_string(device->major) + ":" + std::to_string(device->minor);
    missing.push_back(link);
    command += (command.empty() ? "" : " && ") + std::string("ln -s ") + node.path + " " + link;
  }
  if (versions.empty() || missing.empty()) {
    return;
  }
  Finding& finding = add(findings, "HF-304", Severity::warning,
                         "links under /dev/char are missing, and runc " + join(versions, ", ") + " needs them");
  finding.evidence.push_back("missing: " + join(missing, ", "));
  finding.evidence.emplace_back(
      "runc 1.1.3 to 1.1.6 passes only devices with such a link to systemd; the rest is lost at daemon-reload");
  finding.cure.push_back(command);
}

}  // namespace

void check_host(const HostFacts& host, const host::Census& census, Findings& findings) {
  check_driver(host, findings);
  check_units(host, findings);
  check_nodes(host, findings);
  check_links(host, census, findings);
  if (host.jit_harden == "2" && host.layout != "v1" && host.inventory.state_of("nvidia") != nullptr) {
    Finding& finding = add(findings, "HF-307", Severity::warning,
                           "bpf_jit_harden is 2: NVIDIA's hook cannot edit device filters on this host");
    finding.evidence.emplace_back("net.core.bpf_jit_harden = 2: the constants of programs are blinded");
    finding.cure.emplace_back("sysctl -w net.core.bpf_jit_harden=1, or give GPUs by CDI");
  }
  if (host.sources.nvidia.no_cgroups) {
    Finding& finding = add(
        findings, "HF-312", Severity::warning,
        "NVIDIA's hook is configured to leave the device rules alone: rootful containers get nodes they cannot open");
    finding.evidence.push_back(std::string(nvidia::kSettingsFile) + ": no-cgroups = true");
    finding.cure.emplace_back("nvidia-ctk config --set nvidia-container-cli.no-cgroups=false --in-place");
  }
  std::map<std::string, std::vector<std::string>> stale_rules;
  for (const HostFacts::HardCodedRule& rule : host.lxc_rules) {
    if (driver_with(host.inventory.drivers, device::Kind::character, rule.major).empty()) {
      stale_rules[rule.file].push_back(rule.rule);
    }
  }
  for (const auto& [file, rules] : stale_rules) {
    Finding& finding =
        add(findings, "HF-316", Severity::warning, "the LXC config " + file + " allows a major that no driver has");
    finding.evidence = rules;
    finding.cure.push_back("write the current number into " + file + " (see /proc/devices)");
  }
}

void check_cdi(const HostFacts& host, Findings& findings) {
  for (const cdi::BrokenSpec& broken : host.sources.cdi.broken) {
    Finding& finding = add(findings, "HF-310", Severity::warning, "the CDI spec " + broken.file + " cannot be used");
    finding.evidence.push_back(broken.why);
    finding.cure.push_back("repair or remove " + broken.file);
  }
  if (!host.missing_cdi_files.empty()) {
    Finding& finding =
        add(findings, "HF-310", Severity::warning, "a CDI spec mounts files that this host does not have");
    constexpr std::size_t kMostShown = 8;
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
        cures.insert(generate_command(spec));
      }
    }
    finding.cure.assign(cures.begin(), cures.end());
  }
  using Pair = std::pair<std::string, std::string>;  // the hidden spec, and the one that hides it
  std::map<std::pair<Pair, bool>, std::vector<std::string>> shadowed;
  for (const cdi::Registry::Shadow& shadow : host.sources.cdi.shadows) {
    shadowed[{{shadow.hidden, shadow.by}, shadow.is_conflict}].push_back(shadow.device);
  }
  for (const auto& [relation, devices] : shadowed) {
    const auto& [specs, is_conflict] = relation;
    Finding& finding =
        add(findings, "HF-309", is_conflict ? Severity::warning : Severity::note,
            "the CDI spec " + specs.first + (is_conflict ? " conflicts with " : " is hidden by ") + specs.second);
    finding.evidence.push_back("devices: " + join(devices, ", "));
    finding.cure.emplace_back("keep one spec per device");
  }
  for (const cdi::Spec& spec : host.sources.cdi.specs) {
    std::vector<std::string> lines;
    const auto collect_stale = [&](const container::ContainerEdits& edits) {
      for (const container::NodeEdit& node : edits.nodes) {
        const device::Node* on_host = host.inventory.find(node.on_host());
        const std::optional<device::Device> current = on_host == nullptr ? std::nullopt : on_host->numbers();
        if (node.device && current && (node.device->major != current->major || node.device->minor != current->minor)) {
          lines.push_back(node.path + ": the spec has " + std::to_string(node.device->major) + ":" +
                          std::to_string(node.device->minor) + ", now it is " + std::to_string(current->major) + ":" +
                          std::to_string(current->minor));
        }
      }
    };
    bool any_effective = spec.devices.empty();
    collect_stale(spec.all);
    for (const auto& [name, edits] : spec.devices) {
      if (host.sources.cdi.is_effective(spec, name)) {
        any_effective = true;
        collect_stale(edits);
      }
    }
    std::ranges::sort(lines);
    lines.erase(std::ranges::unique(lines).begin(), lines.end());
    if (any_effective && !lines.empty()) {
      Finding& finding = add(findings, "HF-308", Severity::critical,
                             "the CDI spec " + spec.file + " is stale: new containers get nodes with wrong numbers");
      finding.evidence = lines;
      finding.cure.push_back(generate_command(spec));
    }
  }
}

void check_kubelet(const HostFacts& host, Findings& findings) {
  if (!host.sources.checkpoint_problem.empty()) {
    Finding& finding = add(findings, "HF-318", Severity::warning,
                           "kubelet's record of devices cannot be read: in pods nothing can be believed");
    finding.evidence.push_back(host.sources.checkpoint_problem);
    finding.cure.emplace_back("run holdfast as root; kubelet replaces a damaged file at its next allocation");
  }
  if (!host.sources.checkpoint) {
    return;
  }
  const bool has_uvm = host.inventory.drivers.character.contains("nvidia-uvm");
  std::vector<std::string> without_uvm;
  std::vector<std::string> unregistered;
  for (const kube::Allocation& allocation : host.sources.checkpoint->allocations) {
    const std::string owner = allocation.pod_uid + "/" + allocation.container;
    const auto hands_out = [&allocation](const char* path) {
      return std::ranges::any_of(allocation.devices,
                                 [path](const kube::PluginDevice& device) { return device.container_path == path; });
    };
    if (allocation.resource.starts_with("nvidia.com/") && hands_out("/dev/nvidiactl") &&
        !hands_out("/dev/nvidia-uvm") && has_uvm) {
      without_uvm.push_back("allocation of " + allocation.resource + " to " + owner + " has no /dev/nvidia-uvm (" +
                            host::kCheckpointFile + ")");
    }
    const auto registered = host.sources.checkpoint->registered.find(allocation.resource);
    std::vector<std::string> unknown;
    for (const std::string& id : allocation.ids) {
      if (registered == host.sources.checkpoint->registered.end() ||
          std::ranges::find(registered->second, id) == registered->second.end()) {
        unknown.push_back(id);
      }
    }
    if (!unknown.empty()) {
      unregistered.push_back(allocation.resource + " " + join(unknown, ", ") + " of " + owner);
    }
  }
  if (!without_uvm.empty()) {
    Finding& finding =
        add(findings, "HF-311", Severity::critical,
            "the device plugin hands out GPUs without /dev/nvidia-uvm: it started before the driver was complete");
    finding.evidence = without_uvm;
    finding.cure.emplace_back(
        "restart the device plugin, then the pods: kubectl -n kube-system rollout restart daemonset "
        "nvidia-device-plugin-daemonset");
  }
  if (!unregistered.empty()) {
    Finding& finding =
        add(findings, "HF-317", Severity::warning,
            "kubelet has given out devices that no plugin registers any more: such pods fail when they start again");
    finding.evidence = unregistered;
    finding.cure.emplace_back(
        "start the device plugin before kubelet admits pods; delete pods with UnexpectedAdmissionError");
  }
}

}  // namespace hf::doctor
