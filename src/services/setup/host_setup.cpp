#include "services/setup/host_setup.h"

#include <algorithm>
#include <chrono>

#include "adapters/config/config.h"
#include "adapters/nvidia/driver.h"
#include "core/base/text.h"
#include "host/inventory.h"
#include "kernel/files/device_node.h"
#include "kernel/files/file.h"
#include "kernel/process/command.h"
#include "render/text_diff.h"
#include "services/setup/host_file.h"
#include "services/setup/host_plan.h"

namespace hf::setup {
namespace {

using report::SetupReport;
using Kind = HostStep::Kind;

constexpr const char* kOurs = "# Made by `holdfast setup node`";
constexpr std::chrono::milliseconds kModuleLimit{60'000};  // a driver may initialise many GPUs

Result<HostDeviceFacts> read_facts(const kernel::Host& host) {
  HostDeviceFacts facts;
  facts.inventory = host::take_inventory(host, TRY(config::read_config(host)), host::Libraries::leave);
  facts.params =
      nvidia::parse_params(kernel::read_text(host.root.get(), "proc/driver/nvidia/params").value_or(std::string()));
  for (const std::string directory : {"/dev/char", "/dev/block"}) {
    for (auto& [name, target] : kernel::read_links(host, directory)) {
      facts.links.emplace(std::string(directory).append("/").append(name), std::move(target));
    }
  }
  return facts;
}

// Some containers get a hook that keeps the driver's libraries from creating nodes of other GPUs, or of other parts of
// the same one.
bool leaves_hooks(const kernel::Host& host, const HostDeviceFacts& facts) {
  const auto param = facts.params.find("ModifyDeviceFiles");
  std::size_t gpus = 0;
  bool has_parts = false;
  for (const device::Unit& unit : facts.inventory.units) {
    if (unit.device_class == "nvidia" && !unit.nodes.empty() && !unit.is_excluded) {
      ++gpus;
      has_parts = has_parts || nvidia::has_mig_instances(host, unit);
    }
  }
  return param != facts.params.end() && param->second != "0" && (gpus > 1 || has_parts);
}

Result<void> apply(const kernel::Host& host, const HostStep& step) {
  switch (step.kind) {
    case Kind::create_node:
    case Kind::correct_node: return kernel::make_node_on(host, {step.path, step.device, step.permissions});
    case Kind::create_link:
    case Kind::correct_link: return kernel::make_symlink_on(host, step.path, step.target);
    case Kind::remove_link: return kernel::remove_symlink_on(host, step.path);
  }
  return {};
}

void add_step(SetupReport& report, const std::string& step, const Result<void>& done) {
  if (done) {
    report.steps.push_back(step);
  } else {
    report.failed.push_back(step + ": " + done.error().message);
  }
}

void set_up_devices(const kernel::Host& host, const HostDeviceFacts& facts, SetupReport& report) {
  for (const HostStep& step : plan_nodes(facts)) {
    add_step(report, to_string(step), report.is_done ? apply(host, step) : Result<void>());
  }
}

// Verifies the result, because another process may create nodes at the same time.
Result<void> check_devices(const kernel::Host& host, SetupReport& report) {
  for (const HostStep& step : plan_nodes(TRY(read_facts(host)))) {
    if (report.failed.empty()) {
      report.failed.push_back(to_string(step) + ": it was done, but has no effect");
    }
  }
  return {};
}

bool is_loaded(const kernel::Host& host, std::string module) {
  for (char& character : module) {
    character = character == '-' ? '_' : character;
  }
  return kernel::exists(host.root.get(), "sys/module/" + module);
}

void load_modules(const kernel::Host& host, const HostSetupOptions& options, SetupReport& report) {
  for (const std::string module : {"nvidia", "nvidia-uvm"}) {
    const bool is_there =
        !is_loaded(host, module) &&
        kernel::run({{options.modprobe, "--dry-run", "--quiet", module}, {}, "", -1, {}}, kModuleLimit);
    if (!is_there) {
      continue;
    }
    const Result<std::string> loaded = report.is_done
                                           ? kernel::run({{options.modprobe, module}, {}, "", -1, {}}, kModuleLimit)
                                           : Result<std::string>();
    add_step(report, "load the module " + module, loaded ? Result<void>() : std::unexpected(loaded.error()));
  }
}

bool has_udev(const kernel::Host& host) {
  return kernel::exists(host.root.get(), "etc/udev") || kernel::exists(host.root.get(), "usr/lib/udev") ||
         kernel::exists(host.root.get(), "lib/udev");
}

// A file that only we write, and that is removed by --undo.
struct OwnFile {
  const char* path;
  std::string text;
};

std::string module_options() {
  return std::string(kOurs) +
         "; `holdfast setup node --undo` removes it.\n"
         "# Device nodes are made by its udev rule. The driver's libraries make none, in containers neither.\n"
         "options nvidia NVreg_ModifyDeviceFiles=0\n";
}

Result<void> install(const kernel::Host& host, const OwnFile& wanted, SetupReport& report) {
  const HostFile file(host, wanted.path);
  const HostFile::Content old = TRY(file.read());
  const std::string before = old ? old->text : "";
  if (before == wanted.text) {
    return {};
  }
  report.files.push_back({wanted.path, report::render_diff({wanted.path, before, wanted.text})});
  add_step(report, std::string(old ? "write " : "create ") + wanted.path,
           report.is_done ? file.write(old, wanted.text) : Result<void>());
  return {};
}

Result<void> install_files(const kernel::Host& host, const HostSetupOptions& options, SetupReport& report) {
  if (has_udev(host)) {
    TRY(install(host, {kUdevRule, udev_rule_for(options.program)}, report));
  } else {
    report.notes.emplace_back("there is no udev here: run this again whenever the driver is loaded");
  }
  if (options.device_files == DeviceFiles::by_setup) {
    const std::size_t before = report.files.size();
    TRY(install(host, {kModuleOptions, module_options()}, report));
    if (report.files.size() > before) {
      report.notes.emplace_back("the driver heeds " + std::string(kModuleOptions) + " when it is loaded next");
    }
  }
  return {};
}

// False where there is no such file of ours.
Result<bool> uninstall(const kernel::Host& host, const char* path, SetupReport& report) {
  const HostFile file(host, path);
  const HostFile::Content old = TRY(file.read());
  if (old && !old->text.starts_with(kOurs)) {
    report.notes.push_back(std::string(path) + " is not holdfast's: it is left as it is");
  }
  if (!old || !old->text.starts_with(kOurs)) {
    return false;
  }
  report.files.push_back({path, report::render_diff({path, old->text, ""})});
  TRY(report.is_done ? file.remove(old) : Result<void>());
  report.steps.push_back(std::string("remove ") + path);
  return true;
}

std::string verdict_of(const SetupReport& report) {
  if (!report.failed.empty()) {
    return std::to_string(report.failed.size()) + " of " + std::to_string(report.failed.size() + report.steps.size()) +
           " steps could not be done";
  }
  if (report.steps.empty()) {
    return "the devices have their nodes and links: nothing to do";
  }
  const std::string count = std::to_string(report.steps.size()) + (report.steps.size() == 1 ? " step" : " steps");
  return report.is_done ? "the devices have their nodes and links now: " + count + " done"
                        : count + " would give the devices their nodes and links";
}

}  // namespace

std::string udev_rule_for(const std::string& program) {
  const std::string run = "RUN+=\"" + program + " setup node --quiet\"\n";
  return std::string(kOurs) +
         "; `holdfast setup node --undo` removes it.\n"
         "# NVIDIA's driver makes no links under /dev/char, and not all of its nodes: they are made when it comes.\n"
         R"(ACTION=="add", SUBSYSTEM=="module", KERNEL=="nvidia|nvidia_uvm|nvidia_modeset", )" +
         run + R"(ACTION=="bind", SUBSYSTEM=="pci", DRIVER=="nvidia", )" + run;
}

Result<SetupReport> set_up_host(const kernel::Host& host, const HostSetupOptions& options) {
  TRY(engine::check_program_path(options.program));
  SetupReport report;
  report.subject = "node";
  report.is_done = options.mode == RunMode::carry_out;
  if (options.modules == Modules::load) {
    load_modules(host, options, report);
  }
  const HostDeviceFacts facts = TRY(read_facts(host));
  set_up_devices(host, facts, report);
  TRY(report.is_done ? check_devices(host, report) : Result<void>());
  TRY(install_files(host, options, report));
  if (leaves_hooks(host, facts) && !kernel::exists(host.root.get(), kernel::below_root(kModuleOptions))) {
    report.notes.emplace_back(
        "containers with CAP_MKNOD and not every GPU, or parts of GPUs (MIG), have a hook, because the driver creates "
        "device nodes in them: 'holdfast setup node --keep-device-files' ends that");
  }
  report.verdict = verdict_of(report);
  return report;
}

Result<SetupReport> undo_host(const kernel::Host& host, const HostSetupOptions& options) {
  SetupReport report;
  report.subject = "node";
  report.is_done = options.mode == RunMode::carry_out;
  const bool had_rule = TRY(uninstall(host, kUdevRule, report));
  const bool had_options = TRY(uninstall(host, kModuleOptions, report));
  if (!had_rule && !had_options) {
    report.verdict =
        report.notes.empty() ? std::string(kUdevRule) + " is not there: nothing to undo" : report.notes.front();
    report.notes.clear();
    return report;
  }
  report.notes.emplace_back("nodes and links stay: they have the driver's own numbers, and go with the next start");
  report.verdict =
      report.is_done ? "new nodes and links are left to others now" : "new nodes and links would be left to others";
  return report;
}

}  // namespace hf::setup
