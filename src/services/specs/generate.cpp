#include "services/specs/generate.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fcntl.h>

#include "adapters/nvidia/hook_options.h"
#include "kernel/files/file.h"
#include "services/specs/draft.h"

namespace hf::specs {
namespace {

using container::ContainerEdits;

// One hook creates all links of a device, because each hook delays the start of a container.
ContainerEdits with_links(const Draft& draft, const nvidia::HookSettings& settings) {
  ContainerEdits edits = draft.edits;
  if (draft.links.empty() || settings.path.empty()) {
    return edits;
  }
  nvidia::HookOptions options;
  for (const auto& [target, path] : draft.links) {
    options.links.push_back({target, path});
  }
  edits.hooks.push_back(nvidia::hook_of(options, settings.path));
  return edits;
}

void add_device(cdi::NewSpec& spec, const std::string& name, const ContainerEdits& edits) {
  const bool is_known = std::ranges::any_of(spec.devices, [&](const auto& device) { return device.first == name; });
  if (!name.empty() && !is_known) {
    spec.devices.emplace_back(name, edits);
  }
}

}  // namespace

std::optional<container::NodeEdit> node_edit(const device::Inventory& inventory, const std::string& path) {
  const device::Node* node = inventory.find(path);
  if (node == nullptr || !node->numbers()) {
    return std::nullopt;
  }
  const auto unless_root = [](std::uint32_t id) { return id == 0 ? std::nullopt : std::optional(id); };
  container::NodeEdit edit;
  edit.path = path;
  edit.device = node->numbers();
  if (node->live) {
    edit.mode = node->mode;
    edit.uid = unless_root(node->uid);
    edit.gid = unless_root(node->gid);
  }
  return edit;
}

void add_devices(cdi::NewSpec& spec, const std::vector<Draft>& drafts, const Settings& settings) {
  Draft all;
  for (const Draft& draft : drafts) {
    const ContainerEdits edits = with_links(draft, settings.hook);
    add_device(spec, settings.names == Names::uuid ? "" : draft.index, edits);
    add_device(spec, settings.names == Names::index ? "" : draft.uuid, edits);
    append(all.edits, draft.edits);
    all.links.insert(all.links.end(), draft.links.begin(), draft.links.end());
  }
  if (settings.has_all) {
    add_device(spec, "all", with_links(all, settings.hook));
  }
}

Result<Generated> generate(const kernel::Host& host, const device::Inventory& inventory, const Settings& settings) {
  return settings.device_class == "nvidia" ? generate_nvidia(host, inventory, settings)
                                           : generate_class(host, inventory, settings);
}

Result<void> write_spec(const std::string& file, const std::string& text) {
  std::error_code problem;
  const std::filesystem::path directory = std::filesystem::path(file).parent_path();
  if (!directory.empty() && !std::filesystem::create_directories(directory, problem) && problem) {
    return fail_errno(problem.value(), "make " + directory.string());
  }
  return kernel::replace_file(AT_FDCWD, file, {text});
}

}  // namespace hf::specs
