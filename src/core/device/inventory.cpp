#include "core/device/inventory.h"

#include <algorithm>

namespace hf::device {

std::string to_string(Health health) {
  switch (health) {
    case Health::good: return "good";
    case Health::bad: return "bad";
    case Health::unknown: return "unknown";
  }
  return "";
}

const Node* Inventory::find(std::string_view path) const {
  const auto found = std::ranges::find(nodes, path, &Node::path);
  return found == nodes.end() ? nullptr : &*found;
}

const Unit* Inventory::unit_with(std::string_view path) const {
  const auto found = std::ranges::find_if(
      units, [path](const Unit& unit) { return std::ranges::find(unit.nodes, path) != unit.nodes.end(); });
  return found == units.end() ? nullptr : &*found;
}

const DriverState* Inventory::state_of(std::string_view device_class) const {
  const auto found = std::ranges::find(states, device_class, &DriverState::device_class);
  return found == states.end() ? nullptr : &*found;
}

}  // namespace hf::device
