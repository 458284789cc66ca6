#include "services/shim/driver.h"

#include "kernel/process/module.h"

namespace hf::shim {
namespace {

constexpr const char* kGpuModule = "nvidia";
constexpr const char* kUvmModule = "nvidia-uvm";

}  // namespace

std::optional<std::string> driver_to_load(const Facts& facts, const config::RuntimeSettings& settings) {
  if (!settings.creates_nodes || !facts.trusts_nvidia()) {
    return std::nullopt;
  }
  if (!facts.has_gpu()) {
    return kGpuModule;
  }
  const device::Node* uvm = facts.inventory.find("/dev/nvidia-uvm");
  return uvm == nullptr || !uvm->numbers() ? std::optional<std::string>(kUvmModule) : std::nullopt;
}

void load_driver(const kernel::Host& host, const config::Config& config, const oci::Spec& spec, Facts& facts) {
  for (const char* module : {kGpuModule, kUvmModule}) {
    if (driver_to_load(facts, config.runtime) == module) {
      (void)kernel::load_module(module);
      read_inventory(host, config, spec, facts);
    }
  }
}

}  // namespace hf::shim
