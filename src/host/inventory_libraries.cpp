// In a file of its own, because holdfast-runtime is linked without a loader and cannot load NVIDIA's libraries.
#include <algorithm>
#include <chrono>

#include "adapters/nvidia/driver.h"
#include "adapters/nvidia/library.h"
#include "host/inventory.h"
#include "kernel/files/file.h"

namespace hf::host {
namespace {

constexpr std::chrono::milliseconds kLibraryLimit{10'000};  // a sleeping GPU takes seconds to wake
constexpr const char* kCapabilities = "proc/driver/nvidia/capabilities";

// The driver has a directory for each GPU instance: capabilities/gpu0/mig/gi7.
bool has_mig_devices(const kernel::Host& host) {
  return std::ranges::any_of(kernel::list_names(host.root.get(), kCapabilities), [&host](const std::string& gpu) {
    const std::string directory = std::string(kCapabilities) + "/" + gpu + "/mig";
    return gpu.starts_with("gpu") &&
           std::ranges::any_of(kernel::list_names(host.root.get(), directory),
                               [](const std::string& name) { return name.starts_with("gi"); });
  });
}

}  // namespace

device::Inventory take_inventory(const kernel::Host& host, const config::Config& config, Libraries libraries) {
  device::Inventory inventory = take_inventory(host, config);
  if (libraries == Libraries::leave || (libraries == Libraries::ask_for_mig && !has_mig_devices(host))) {
    return inventory;
  }
  const Result<nvidia::LibraryAnswer> answer = nvidia::ask_libraries(kLibraryLimit);
  if (answer) {
    nvidia::add_to(inventory, *answer);
  } else {
    inventory.notes.push_back(answer.error().message);
  }
  nvidia::add_mig_nodes(inventory, host);
  std::ranges::sort(inventory.nodes, {}, &device::Node::path);
  return inventory;
}

}  // namespace hf::host
