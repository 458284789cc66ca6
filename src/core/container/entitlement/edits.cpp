#include "core/container/entitlement/edits.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include "core/base/add_missing.h"

namespace hf::container {
namespace {

constexpr std::array<std::pair<HookStage, std::string_view>, 6> kStages = {
    {{HookStage::prestart, "prestart"},
     {HookStage::create_runtime, "createRuntime"},
     {HookStage::create_container, "createContainer"},
     {HookStage::start_container, "startContainer"},
     {HookStage::poststart, "poststart"},
     {HookStage::poststop, "poststop"}}};

std::string_view name_of(const std::string& variable) {
  return std::string_view(variable).substr(0, variable.find('='));
}

template <class Value, class Key>
void replace_or_add(std::vector<Value>& all, const Value& value, Key key) {
  const auto same =
      std::ranges::find_if(all, [&](const Value& other) { return std::invoke(key, other) == std::invoke(key, value); });
  if (same != all.end()) {
    *same = value;
  } else {
    all.push_back(value);
  }
}

}  // namespace

std::string to_string(HookStage stage) {
  return std::string(std::ranges::find(kStages, stage, &std::pair<HookStage, std::string_view>::first)->second);
}

std::optional<HookStage> parse_hook_stage(std::string_view name) {
  const auto* const found = std::ranges::find(kStages, name, &std::pair<HookStage, std::string_view>::second);
  return found == kStages.end() ? std::nullopt : std::optional(found->first);
}

bool ContainerEdits::is_empty() const { return *this == ContainerEdits(); }

void append(ContainerEdits& edits, const ContainerEdits& more) {
  for (const std::string& variable : more.environment) {
    replace_or_add(edits.environment, variable, name_of);
  }
  for (const NodeEdit& node : more.nodes) {
    replace_or_add(edits.nodes, node, &NodeEdit::path);
  }
  for (const MountEdit& mount : more.mounts) {
    replace_or_add(edits.mounts, mount, &MountEdit::destination);
  }
  add_missing(edits.hooks, more.hooks);
  add_missing(edits.gids, more.gids);
  edits.net_devices.insert(more.net_devices.begin(), more.net_devices.end());
  edits.intel_rdt = more.intel_rdt ? more.intel_rdt : edits.intel_rdt;
}

}  // namespace hf::container
