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

}  // namespace

// Such a GPU has capabilities/gpu0/mig, whether MIG is enabled or not (driver 580 on an H200: the files below /proc are
// the same), and a GPU with MIG enabled and without parts cannot be used. Only NVML tells.
bool may_have_mig(const kernel::Host& host) {
  return std::ranges::any_of(kernel::list_names(host.root.get(), kCapabilities), [&host](const std::string& gpu) {
    return gpu.starts_with("gpu") &&
           kernel::exists(host.root.get(), std::string(kCapabilities).append("/").append(gpu).append("/mig"));
  });
}

device::Inventory take_inventory(const kernel::Host& host, const config::Config& config, Libraries libraries) {
  device::Inventory inventory = take_inventory(host, config);
  const bool asks_for_mig = libraries == Libraries::ask_for_mig;
  if (libraries == Libraries::leave || (asks_for_mig && !may_have_mig(host))) {
    return inventory;
  }
  const Result<nvidia::LibraryAnswer> answer =
      nvidia::ask_libraries(kLibraryLimit, asks_for_mig ? nvidia::Question::mig : nvidia::Question::everything);
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
