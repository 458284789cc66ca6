#include "programs/holdfast-kube/class_specs.h"

#include <algorithm>

#include "host/inventory.h"
#include "kernel/files/file.h"
#include "kernel/process/command.h"

namespace hf::programs {

ClassSpecs::ClassSpecs(const kernel::Host& host) : host_(host) {
  const std::string own = kernel::own_path();
  const std::string beside = own.substr(0, own.rfind('/')) + "/holdfast-runtime";
  hook_ = kernel::exists(host.root.get(), kernel::below_root(beside)) ? beside : nvidia::HookSettings().path;
}

Result<void> ClassSpecs::refresh(const config::Config& config) {
  const resource::Policy& policy = config.kube.policy;
  const bool uses_cdi = config.kube.dra.is_enabled ||
                        policy.strategies.contains(resource::DeviceListStrategy::cdi_cri) ||
                        policy.strategies.contains(resource::DeviceListStrategy::cdi_annotations);
  if (!uses_cdi) {
    return {};
  }
  const device::Inventory inventory = host::take_inventory(host_, config);
  for (const resource::ResourceRule& rule : policy.rules) {
    if (std::ranges::find(inventory.units, rule.device_class, &device::Unit::device_class) != inventory.units.end()) {
      TRY(refresh(config, rule.device_class));
    }
  }
  return {};
}

Result<void> ClassSpecs::refresh(config::Config config, const std::string& device_class) {
  const bool is_by_guard = !config.cdi.file.empty() && config.cdi.device_class == device_class;
  config.cdi.file = is_by_guard ? config.cdi.file : "/var/run/cdi/holdfast-" + device_class + ".yaml";
  config.cdi.device_class = device_class;
  specs::Settings settings;
  settings.incomplete = specs::Incomplete::left_out;
  settings.hook.path = config.cdi.hook.empty() ? hook_ : config.cdi.hook;
  const std::string& hook = settings.hook.path;
  if (device_class == "nvidia" && !kernel::exists(host_.root.get(), kernel::below_root(hook))) {
    return fail(std::errc::no_such_file_or_directory,
                hook + " is not there, and CDI specs need it as their hook: install it, or set kube.strategies");
  }
  auto& spec = specs_.try_emplace(device_class, host_, settings).first->second;
  (void)TRY(spec.refresh(config));
  return spec.problem() ? Result<void>(std::unexpected(*spec.problem())) : Result<void>();
}

}  // namespace hf::programs
