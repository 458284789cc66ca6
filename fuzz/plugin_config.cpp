// A config file of NVIDIA's device plugin: any text is read or refused in one line, and what is read can be offered.
#include <string>

#include "adapters/config/plugin_options.h"
#include "check.h"
#include "core/resource/allocation.h"
#include "core/resource/offer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  hf::config::KubeSettings settings;
  std::vector<std::string> notes;
  const hf::Result<void> parsed = hf::config::parse_nvidia_plugin(text, settings, notes);
  if (!parsed) {
    check(!parsed.error().message.empty(), "an error says why");
    return 0;
  }
  hf::device::Inventory inventory;
  hf::device::Unit& unit = inventory.units.emplace_back();
  unit.device_class = "nvidia";
  unit.uuid = "GPU-0";
  unit.model = "NVIDIA A100";
  unit.nodes = {"/dev/nvidia0"};
  for (const hf::resource::Offer& offer :
       hf::resource::offers_of(inventory, hf::device::built_in_classes(), settings.policy, {})) {
    check(hf::resource::check_resource_name(offer.resource).has_value(), "kubelet accepts the name of a resource");
    for (const hf::resource::OfferedDevice& device : offer.devices) {
      check(!hf::resource::allocate(offer, {device.id}, settings.policy), "a set without its nodes is not given");
    }
  }
  return 0;
}
