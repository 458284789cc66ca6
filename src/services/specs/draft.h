// Draft: the devices of a spec while it is put together.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/container/edits.h"
#include "core/device/inventory.h"
#include "services/specs/generate.h"

namespace hf::specs {

// A device by the names it has, with links to be made in the container: target and path.
struct Draft {
  std::string index;
  std::string uuid;
  container::ContainerEdits edits;
  std::vector<std::pair<std::string, std::string>> links;
};

// Numbers and permissions of today; absent where nothing tells its numbers.
std::optional<container::NodeEdit> node_edit(const device::Inventory& inventory, const std::string& path);

// A spec's devices, and one for all of them together.
void put_devices(cdi::NewSpec& spec, const std::vector<Draft>& drafts, const Settings& settings);

Result<Generated> generate_nvidia(const kernel::Host& host, const device::Inventory& inventory,
                                  const Settings& settings);
Result<Generated> generate_class(const kernel::Host& host, const device::Inventory& inventory,
                                 const Settings& settings);

}  // namespace hf::specs
