#include <algorithm>
#include <array>
#include <cstdint>

#include "core/base/text.h"
#include "services/doctor/checks.h"
#include "services/doctor/texts.h"

namespace hf::doctor {
namespace {

using report::Finding;
using report::Severity;

bool is_unloaded(const HostFacts& host) {
  return host.inventory.state_of("nvidia") != nullptr && loaded_driver(host) == nullptr;
}

// The errors of NVIDIA's catalog (docs.nvidia.com/deploy/xid-errors) that are the GPU's own fault, and not of the
// application that used it.
constexpr std::array<std::uint32_t, 6> kFaultsOfGpu = {
    48,   // double bit ECC error
    74,   // NVLink error
    79,   // the GPU has fallen off the bus
    95,   // uncontained memory error
    119,  // timeout of a call to the GPU's own processor (GSP)
    154,  // the GPU must be reset, or the host restarted
};

bool is_fault_of_gpu(const nvidia::LogEvent& event) {
  return event.kind != nvidia::LogEvent::Kind::xid || std::ranges::find(kFaultsOfGpu, event.xid) != kFaultsOfGpu.end();
}

std::vector<std::string> log_lines_about(const HostFacts& host, const device::Unit& unit) {
  std::vector<std::string> lines;
  for (const nvidia::LogEvent& event : host.log) {
    if (is_fault_of_gpu(event) && is_about(event, unit)) {
      lines.push_back("kernel log: " + event.line);
    }
  }
  return lines;
}

Finding finding_about_sick(const device::Unit& unit, const std::vector<std::string>& log_lines) {
  Finding finding =
      finding_for_host("HF-306", Severity::critical, "GPU " + unit.name + (unit.health_text.empty() ? " is sick" : ""));
  finding.because = unit.health_text;
  finding.nodes = unit.nodes;
  finding.evidence.push_back("PCI " + unit.pci + (unit.model.empty() ? "" : ", " + unit.model));
  finding.evidence.insert(finding.evidence.end(), log_lines.begin(), log_lines.end());
  const bool is_excluded = log_lines.empty() && unit.is_excluded;
  finding.cure.emplace_back(
      is_excluded ? "remove it from NVreg_ExcludedGpus and reload the driver, if it is not meant to be excluded"
                  : "taint or drain the node, then nvidia-smi --gpu-reset or a reboot; healing rules would not help");
  return finding;
}

}  // namespace

Findings find_unloaded_host_driver(const HostFacts& host, const host::Census& /*census*/) {
  if (!is_unloaded(host)) {
    return {};
  }
  Finding finding =
      finding_for_host("HF-301", Severity::critical, "the NVIDIA driver is not loaded, though there is a GPU");
  for (const device::Unit& unit : host.inventory.units) {
    if (unit.device_class == "nvidia") {
      finding.evidence.push_back("PCI " + unit.pci + ": " + unit.health_text);
    }
  }
  const std::vector<std::string>& modules = host.inventory.state_of("nvidia")->modules;
  finding.evidence.emplace_back(std::ranges::find(modules, "nvidia") != modules.end()
                                    ? "module nvidia is there, but /proc/driver/nvidia/version is not"
                                    : "no /sys/module/nvidia");
  finding.cure.emplace_back("modprobe nvidia");
  return {finding};
}

Findings find_other_driver_libraries(const HostFacts& host, const host::Census& /*census*/) {
  const device::DriverState* driver = loaded_driver(host);
  if (driver == nullptr || host.library_files.empty()) {
    return {};
  }
  std::vector<std::string> files;
  for (const auto& [file, version] : host.library_files) {
    if (version == driver->version) {
      return {};
    }
    files.push_back(file);
  }
  Finding finding =
      finding_for_host("HF-305", Severity::critical,
                       "the loaded driver is " + driver->version + ", but the libraries are of another version");
  finding.evidence = {"libraries: " + join(files, ", "), "driver: /proc/driver/nvidia/version"};
  finding.cure.emplace_back(
      "drain the node, then: rmmod nvidia_drm nvidia_modeset nvidia_uvm nvidia && modprobe nvidia; or reboot");
  return {finding};
}

// Where the driver is not loaded, HF-301 reports it, and where a GPU lacks its fabric, HF-314.
Findings find_sick_gpus(const HostFacts& host, const host::Census& /*census*/) {
  Findings findings;
  for (const device::Unit& unit : host.inventory.units) {
    if (unit.device_class != "nvidia" || unit.lacks_fabric || is_unloaded(host)) {
      continue;
    }
    const std::vector<std::string> log_lines = log_lines_about(host, unit);
    if (unit.health == device::Health::bad || !log_lines.empty()) {
      findings.push_back(finding_about_sick(unit, log_lines));
    }
  }
  return findings;
}

Findings find_hardened_jit(const HostFacts& host, const host::Census& /*census*/) {
  constexpr std::uint32_t kForAllUsers = 2;
  if (host.jit_harden != kForAllUsers || !host.has_v2 || host.inventory.state_of("nvidia") == nullptr) {
    return {};
  }
  Finding finding = finding_for_host("HF-307", Severity::warning, "bpf_jit_harden is 2");
  finding.because = "NVIDIA's hook cannot edit device filters on this host";
  finding.evidence.emplace_back("net.core.bpf_jit_harden = 2: the constants of programs are blinded");
  finding.cure.emplace_back("sysctl -w net.core.bpf_jit_harden=1, or give GPUs by CDI");
  return {finding};
}

Findings find_hook_without_rules(const HostFacts& host, const host::Census& /*census*/) {
  if (!host.sources.nvidia.no_cgroups) {
    return {};
  }
  Finding finding =
      finding_for_host("HF-312", Severity::warning, "NVIDIA's hook is configured to leave the device rules alone");
  finding.because = "rootful containers get nodes they cannot open";
  finding.evidence.push_back(std::string(nvidia::kSettingsFile) + ": no-cgroups = true");
  finding.cure.emplace_back("nvidia-ctk config --set nvidia-container-cli.no-cgroups=false --in-place");
  return {finding};
}

Findings find_half_loaded_driver(const HostFacts& host, const host::Census& /*census*/) {
  if (loaded_driver(host) == nullptr || host.inventory.drivers.character.contains("nvidia-uvm")) {
    return {};
  }
  Finding finding = finding_for_host("HF-313", Severity::critical, "the NVIDIA driver is half loaded");
  finding.because = "nvidia-uvm is missing, CUDA cannot start";
  finding.evidence.emplace_back("/proc/devices has no nvidia-uvm");
  finding.cure.emplace_back("modprobe nvidia-uvm && nvidia-modprobe -u -c 0");
  return {finding};
}

Findings find_missing_fabric(const HostFacts& host, const host::Census& /*census*/) {
  Findings findings;
  for (const device::Unit& unit : host.inventory.units) {
    if (unit.device_class != "nvidia" || !unit.lacks_fabric) {
      continue;
    }
    Finding& finding = findings.emplace_back(finding_for_host("HF-314", Severity::critical, "GPU " + unit.name));
    finding.because = unit.health_text + ", CUDA gives 802";
    finding.nodes = unit.nodes;
    finding.evidence.push_back("PCI " + unit.pci + ", by NVML");
    finding.cure.emplace_back("systemctl restart nvidia-fabricmanager");
  }
  return findings;
}

Findings find_failing_library(const HostFacts& host, const host::Census& /*census*/) {
  const device::DriverState* driver = loaded_driver(host);
  if (driver == nullptr || driver->library_error.empty()) {
    return {};
  }
  Finding finding = finding_for_host("HF-315", Severity::critical, "NVIDIA's own library fails on the host");
  finding.because = driver->library_error;
  if (!driver->meaning.empty()) {
    finding.evidence.push_back("which means: " + driver->meaning);
  }
  finding.cure.emplace_back("holdfast devices");
  return {finding};
}

}  // namespace hf::doctor
