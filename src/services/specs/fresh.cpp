#include "services/specs/fresh.h"

#include "kernel/file.h"
#include "kernel/inside.h"
#include "node/inventory.h"
#include "services/specs/generate.h"

namespace hf::specs {
namespace {

// Whatever a spec is made of, as far as it can be seen without asking anybody.
std::string picture_of(const kernel::Host& host, const device::Inventory& inventory, const std::string& file) {
  std::string picture = file + "\n";
  for (const device::DriverState& state : inventory.states) {
    picture.append(state.device_class).append(" ").append(state.version).append("\n");
  }
  for (const device::Unit& unit : inventory.units) {
    picture.append(unit.device_class).append(" ").append(unit.name).append(" ").append(unit.uuid).append(" ");
    picture.append(unit.pci).append("\n");
    const std::string parts = "proc/driver/nvidia/capabilities/gpu" + unit.name + "/mig";
    for (const std::string& part : kernel::list_names(host.root.get(), parts)) {
      picture += part;
      for (const std::string& instance :
           kernel::list_names(host.root.get(), std::string(parts).append("/").append(part))) {
        picture.append(" ").append(instance);
      }
      picture += "\n";
    }
  }
  for (const device::Node& node : inventory.nodes) {
    picture.append(node.path).append(" ").append(node.numbers() ? to_string(*node.numbers()) : "");
    picture.append(node.live ? "\n" : " gone\n");
  }
  return picture;
}

}  // namespace

Result<bool> FreshSpec::refresh(const config::Config& config) {
  const std::string& file = config.cdi.file;
  if (file.empty()) {
    return false;
  }
  const bool is_nvidia = config.cdi.device_class == "nvidia";
  const device::Inventory plain = node::take_inventory(host_, config);
  const std::string picture = picture_of(host_, plain, file + " " + config.cdi.device_class);
  if (picture == last_ && kernel::exists(host_.root.get(), kernel::below_root(file))) {
    return false;
  }
  Settings settings;
  settings.device_class = config.cdi.device_class;
  settings.driver_root = config.runtime.driver_root;
  const Result<Generated> generated =
      generate(host_, is_nvidia ? node::take_inventory(host_, config, node::Libraries::ask) : plain, settings);
  last_ = picture;  // whoever cannot be asked now is asked again when something has changed
  if (!generated) {
    return std::unexpected(generated.error());
  }
  const std::string text = file.ends_with(".json") ? render_json(generated->spec) : render_yaml(generated->spec);
  const Result<std::string> there = kernel::read_text(host_.root.get(), kernel::below_root(file));
  if (there && *there == text) {
    return false;
  }
  (void)TRY(kernel::make_folder_inside(host_.root.get(), file.substr(0, file.rfind('/'))));
  TRY(kernel::replace_file(host_.root.get(), kernel::below_root(file), {text}));
  return true;
}

}  // namespace hf::specs
