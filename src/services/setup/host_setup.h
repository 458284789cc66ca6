// HostSetup: creates the nodes and links that the host's devices need under /dev, and a udev rule that maintains them.
// On request it keeps NVIDIA's driver from doing the same in containers.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/base/run_mode.h"
#include "core/report/setup_report.h"
#include "kernel/files/host.h"
#include "services/setup/engine_setup.h"

namespace hf::setup {

enum class Modules : std::uint8_t { leave, load };
// Whether NVIDIA's driver leaves its device nodes to others: then containers need no hook that keeps its libraries from
// creating nodes.
enum class DeviceFiles : std::uint8_t { by_driver, by_setup };

struct HostSetupOptions {
  std::string program;                      // path of this program, which the udev rule runs
  std::string modprobe = "/sbin/modprobe";  // loads modules
  Modules modules = Modules::leave;
  DeviceFiles device_files = DeviceFiles::by_driver;
  RunMode mode = RunMode::carry_out;
};

inline constexpr const char* kUdevRule = "/etc/udev/rules.d/71-holdfast.rules";
inline constexpr const char* kModuleOptions = "/etc/modprobe.d/holdfast-nvidia.conf";
std::string udev_rule_for(const std::string& program);

// The report lists the steps that failed; the others are done.
Result<report::SetupReport> set_up_host(const kernel::Host& host, const HostSetupOptions& options);
// Nodes and links stay: their numbers are right without us as well, and /dev is recreated at every boot.
Result<report::SetupReport> undo_host(const kernel::Host& host, const HostSetupOptions& options);

}  // namespace hf::setup
