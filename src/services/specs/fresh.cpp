#include "services/specs/fresh.h"

#include <algorithm>
#include <chrono>

#include "adapters/nvidia/driver.h"
#include "host/inventory.h"
#include "kernel/files/file.h"
#include "services/specs/generate.h"

namespace hf::specs {
namespace {

// Asking wakes a sleeping GPU.
constexpr std::chrono::minutes kMigInterval{5};

// Everything a spec depends on that can be read without NVIDIA's library.
std::string fingerprint_of(const kernel::Host& host, const device::Inventory& inventory, const std::string& file) {
  std::string fingerprint = file + "\n";
  for (const device::DriverState& state : inventory.states) {
    fingerprint.append(state.device_class).append(" ").append(state.version).append("\n");
  }
  for (const device::Unit& unit : inventory.units) {
    fingerprint.append(unit.device_class).append(" ").append(unit.name).append(" ").append(unit.uuid).append(" ");
    fingerprint.append(unit.pci).append("\n").append(nvidia::describe_mig_instances(host, unit));
  }
  for (const device::Node& node : inventory.nodes) {
    fingerprint.append(node.path).append(" ").append(node.numbers() ? to_string(*node.numbers()) : "");
    fingerprint.append(node.live ? "\n" : " gone\n");
  }
  return fingerprint;
}

bool has_sleeping_gpu(const kernel::Host& host, const device::Inventory& inventory) {
  return std::ranges::any_of(inventory.units, [&host](const device::Unit& unit) {
    const std::string status = "sys/bus/pci/devices/" + unit.pci + "/power/runtime_status";
    return unit.device_class == "nvidia" &&
           kernel::read_text(host.root.get(), status).value_or("").starts_with("suspended");
  });
}

// NVML alone knows the names of parts. Everything else is known without it.
bool has_mig_instances(const kernel::Host& host, const device::Inventory& inventory) {
  return std::ranges::any_of(inventory.units, [&host](const device::Unit& unit) {
    return unit.device_class == "nvidia" && nvidia::has_mig_instances(host, unit);
  });
}

bool knows_mig(const device::Inventory& inventory) {
  return std::ranges::any_of(inventory.units, &device::Unit::is_mig_capable);
}

}  // namespace

// Enabling MIG changes nothing that can be read. It wakes the GPU.
bool FreshSpec::must_ask_for_mig(const config::Config& config, const device::Inventory& inventory, Time now) const {
  return now - asked_at_ >= kMigInterval && config.cdi.device_class == "nvidia" && host::may_have_mig(host_) &&
         !has_sleeping_gpu(host_, inventory);
}

Result<bool> FreshSpec::refresh(const config::Config& config, Time now) {
  const std::string& file = config.cdi.file;
  if (file.empty()) {
    return false;
  }
  const device::Inventory plain = host::take_inventory(host_, config);
  const std::string fingerprint =
      fingerprint_of(host_, plain, file + " " + config.cdi.device_class + " " + config.cdi.hook);
  const bool is_current = fingerprint == last_ && kernel::exists(host_.root.get(), kernel::below_root(file));
  if (is_current && !must_ask_for_mig(config, plain, now)) {
    return false;
  }
  const bool asks = has_mig_instances(host_, plain) || !has_sleeping_gpu(host_, plain);
  asked_at_ = asks ? now : asked_at_;
  const device::Inventory inventory =
      host::take_inventory(host_, config, asks ? host::Libraries::ask_for_mig : host::Libraries::leave);
  if (is_current && !knows_mig(inventory)) {
    return false;  // the library does not answer now; what it said before may still be true
  }
  problem_.reset();
  Settings settings = settings_;
  settings.device_class = config.cdi.device_class;
  settings.driver_root = config.runtime.driver_root;
  if (!config.cdi.hook.empty()) {
    settings.hook.path = config.cdi.hook;
  }
  const Result<Generated> generated = generate(host_, inventory, settings);
  last_ = fingerprint;  // a library that fails now is asked again after the next change, or after a while for MIG
  if (!generated) {
    problem_ = generated.error();
    return std::unexpected(generated.error());
  }
  const std::string text = file.ends_with(".json") ? render_json(generated->spec) : render_yaml(generated->spec);
  const Result<std::string> existing = kernel::read_text(host_.root.get(), kernel::below_root(file));
  if (existing && *existing == text) {
    return false;
  }
  TRY(kernel::make_directories(host_.root.get(), kernel::below_root(file.substr(0, file.rfind('/')))));
  TRY(kernel::replace_file(host_.root.get(), kernel::below_root(file), {text}));
  return true;
}

}  // namespace hf::specs
