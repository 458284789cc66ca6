#include "services/specs/fresh.h"

#include "host/inventory.h"
#include "kernel/files/file.h"
#include "services/specs/generate.h"

namespace hf::specs {
namespace {

// Everything a spec depends on that can be read without NVIDIA's library.
std::string fingerprint_of(const kernel::Host& host, const device::Inventory& inventory, const std::string& file) {
  std::string fingerprint = file + "\n";
  for (const device::DriverState& state : inventory.states) {
    fingerprint.append(state.device_class).append(" ").append(state.version).append("\n");
  }
  for (const device::Unit& unit : inventory.units) {
    fingerprint.append(unit.device_class).append(" ").append(unit.name).append(" ").append(unit.uuid).append(" ");
    fingerprint.append(unit.pci).append("\n");
    const std::string parts = "proc/driver/nvidia/capabilities/gpu" + unit.name + "/mig";
    for (const std::string& part : kernel::list_names(host.root.get(), parts)) {
      fingerprint += part;
      for (const std::string& instance :
           kernel::list_names(host.root.get(), std::string(parts).append("/").append(part))) {
        fingerprint.append(" ").append(instance);
      }
      fingerprint += "\n";
    }
  }
  for (const device::Node& node : inventory.nodes) {
    fingerprint.append(node.path).append(" ").append(node.numbers() ? to_string(*node.numbers()) : "");
    fingerprint.append(node.live ? "\n" : " gone\n");
  }
  return fingerprint;
}

}  // namespace

Result<bool> FreshSpec::refresh(const config::Config& config) {
  const std::string& file = config.cdi.file;
  if (file.empty()) {
    return false;
  }
  const device::Inventory plain = host::take_inventory(host_, config);
  const std::string fingerprint =
      fingerprint_of(host_, plain, file + " " + config.cdi.device_class + " " + config.cdi.hook);
  if (fingerprint == last_ && kernel::exists(host_.root.get(), kernel::below_root(file))) {
    return false;
  }
  problem_.reset();
  Settings settings = settings_;
  settings.device_class = config.cdi.device_class;
  settings.driver_root = config.runtime.driver_root;
  if (!config.cdi.hook.empty()) {
    settings.hook.path = config.cdi.hook;
  }
  const Result<Generated> generated =
      generate(host_, host::take_inventory(host_, config, host::Libraries::ask_for_mig), settings);
  last_ = fingerprint;  // a library that fails now is asked again only after the next change
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
