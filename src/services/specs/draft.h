// Draft: one device of a spec that is being generated.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/container/entitlement/edits.h"
#include "core/device/inventory.h"
#include "services/specs/generate.h"

namespace hf::specs {

// `links` are symlinks to be created in the container, as pairs of target and path.
struct Draft {
  std::string index;
  std::string uuid;
  container::ContainerEdits edits;
  std::vector<std::pair<std::string, std::string>> links;
};

// Has the node's current numbers and permissions; absent if its numbers are unknown.
std::optional<container::NodeEdit> node_edit(const device::Inventory& inventory, const std::string& path);

// Adds the devices to the spec, and one that combines all of them.
void add_devices(cdi::NewSpec& spec, const std::vector<Draft>& drafts, const Settings& settings);

Result<Generated> generate_nvidia(const kernel::Host& host, const device::Inventory& inventory,
                                  const Settings& settings);
Result<Generated> generate_class(const kernel::Host& host, const device::Inventory& inventory,
                                 const Settings& settings);

}  // namespace hf::specs
