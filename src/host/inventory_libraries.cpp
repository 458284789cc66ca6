// In a file of its own, because holdfast-runtime is linked without a loader and cannot load NVIDIA's libraries.
#include <algorithm>
#include <chrono>

#include "adapters/nvidia/driver.h"
#include "adapters/nvidia/library.h"
#include "host/inventory.h"

namespace hf::host {
namespace {

constexpr std::chrono::milliseconds kLibraryLimit{10'000};  // a sleeping GPU takes seconds to wake

}  // namespace

device::Inventory take_inventory(const kernel::Host& host, const config::Config& config, Libraries libraries) {
  device::Inventory inventory = take_inventory(host, config);
  if (libraries == Libraries::leave) {
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
