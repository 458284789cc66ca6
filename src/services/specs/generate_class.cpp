#include <algorithm>

#include "core/base/text.h"
#include "kernel/files/file.h"
#include "services/specs/draft.h"

namespace hf::specs {
namespace {

using device::Inventory;
using device::Node;
using device::Unit;

// The other nodes of the same card: a GPU has one for display and one for rendering.
std::vector<std::string> siblings_of(const kernel::Host& host, const Node& node) {
  std::vector<std::string> paths;
  const std::optional<device::Device> device = node.numbers();
  if (!device || !node.path.starts_with("/dev/dri/")) {
    return paths;
  }
  const std::string numbers = std::to_string(device->major) + ":" + std::to_string(device->minor);
  for (const std::string& name : kernel::list_names(host.root.get(), "sys/dev/char/" + numbers + "/device/drm")) {
    paths.push_back("/dev/dri/" + name);
  }
  return paths;
}

Draft draft_of(const kernel::Host& host, const Inventory& inventory, const Unit& unit) {
  Draft draft;
  draft.uuid = unit.uuid.empty() ? unit.name : unit.uuid;
  std::vector<std::string> paths = unit.nodes;
  for (const std::string& path : unit.nodes) {
    if (const Node* node = inventory.find(path); node != nullptr) {
      const std::vector<std::string> more = siblings_of(host, *node);
      paths.insert(paths.end(), more.begin(), more.end());
    }
  }
  for (const std::string& path : paths) {
    const Node* node = inventory.find(path);
    const bool is_known =
        std::ranges::find(draft.edits.nodes, path, &container::NodeEdit::path) != draft.edits.nodes.end();
    if (node != nullptr && node->live && !is_known) {
      draft.edits.nodes.push_back(*node_edit(inventory, path));
    }
  }
  return draft;
}

// The classes that this host has devices of, for the message about an unknown class.
std::string classes_of(const Inventory& inventory) {
  std::vector<std::string> names;
  for (const Unit& unit : inventory.units) {
    if (std::ranges::find(names, unit.device_class) == names.end()) {
      names.push_back(unit.device_class);
    }
  }
  return names.empty() ? "none" : join(names, ", ");
}

}  // namespace

Result<Generated> generate_class(const kernel::Host& host, const Inventory& inventory, const Settings& settings) {
  Generated generated;
  generated.spec.kind = (settings.vendor.empty() ? "holdfast.dev" : settings.vendor) + "/" + settings.device_class;
  std::vector<Draft> drafts;
  for (const Unit& unit : inventory.units) {
    if (unit.device_class != settings.device_class) {
      continue;
    }
    Draft draft = draft_of(host, inventory, unit);
    if (draft.edits.nodes.empty()) {
      generated.notes.push_back(unit.name + " is left out: its node is missing");
      continue;
    }
    draft.index = std::to_string(drafts.size());
    drafts.push_back(std::move(draft));
  }
  if (drafts.empty()) {
    return fail(Reason::unavailable, "generate a spec of class " + quote(settings.device_class) +
                                         ": this host has no device of it; it has: " + classes_of(inventory));
  }
  for (const Node& node : inventory.nodes) {
    const bool is_shared = node.part == device::Part::control || node.part == device::Part::helper;
    if (node.device_class != settings.device_class || !is_shared) {
      continue;
    }
    if (node.live) {
      generated.spec.all.nodes.push_back(*node_edit(inventory, node.path));
    } else if (node.part == device::Part::control) {
      return fail(Reason::unavailable, "generate a spec of class " + quote(settings.device_class) + ": " + node.path +
                                           " is missing, and no device of it works without");
    }
  }
  add_devices(generated.spec, drafts, settings);
  return generated;
}

}  // namespace hf::specs
