#include "services/plugin/once.h"

#include "host/inventory.h"

namespace hf::plugin {

report::PluginReport look_once(const kernel::Host& host, const config::Config& config) {
  const device::Inventory inventory = host::take_inventory(host, config, host::Libraries::ask);
  report::PluginReport report;
  report.notes = inventory.notes;
  for (resource::Offer& offer : resource::offers_of(inventory, config.classes, config.kube.policy, {})) {
    report::PluginReport::Resource one;
    for (const resource::OfferedDevice& device : offer.devices) {
      one.allocations.push_back(resource::allocate(offer, {device.id}, config.kube.policy));
    }
    one.offer = std::move(offer);
    report.resources.push_back(std::move(one));
  }
  if (report.resources.empty()) {
    report.notes.emplace_back("this host has no device of the resources in the config");
  }
  return report;
}

}  // namespace hf::plugin
