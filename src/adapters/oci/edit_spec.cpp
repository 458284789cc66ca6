#include "adapters/oci/edit_spec.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "adapters/document/json_places.h"
#include "adapters/oci/drop_hooks.h"
#include "adapters/oci/edits_json.h"
#include "adapters/oci/oci_config.h"
#include "adapters/oci/spec.h"
#include "core/device/oci_rules.h"
#include "core/device/table.h"

namespace hf::oci {
namespace {

using container::ContainerEdits;
using container::HookEdit;
using container::MountEdit;
using container::NodeEdit;
using document::JsonPlaces;
using document::Splices;
using Json = document::OrderedJson;
using Place = JsonPlaces::Place;

std::string dump(const Json& json) { return document::render_json(json); }

Json parse_value(std::string_view text) { return document::parse_json<Json>(text).value_or(Json()); }

class Editor {
 public:
  Editor(std::string_view text, const JsonPlaces& places) : text_(text), places_(places) {}

  Result<EditedSpec> edit(const ContainerEdits& edits) {
    TRY(set_environment(edits.environment));
    TRY(add_nodes(edits.nodes));
    TRY(add_mounts(edits.mounts));
    TRY(add_hooks(edits.hooks));
    TRY(add_gids(edits.gids));
    TRY(add_linux(edits));
    TRY(merge(places_.root(), additions_, "config.json"));
    return EditedSpec{splices_.is_empty() ? std::string(text_) : splices_.apply(text_), std::move(corrected_)};
  }

 private:
  // The value at a path of keys; null where there is none, or where it is JSON's null.
  [[nodiscard]] Result<const Place*> find(std::initializer_list<std::string_view> path) const {
    const Place* place = &places_.root();
    for (const std::string_view name : path) {
      if (place->kind != JsonPlaces::Kind::object) {
        return nullptr;
      }
      place = TRY(places_.member(*place, name));
      if (place == nullptr) {
        return nullptr;
      }
    }
    return places_.text_of(*place) == "null" ? nullptr : place;
  }

  [[nodiscard]] Result<std::vector<const Place*>> elements(std::initializer_list<std::string_view> path) const {
    const Place* list = TRY(find(path));
    return list == nullptr ? std::vector<const Place*>() : places_.children(*list);
  }

  [[nodiscard]] Json value_of(const Place& place) const { return parse_value(places_.text_of(place)); }

  Result<void> set_environment(const std::vector<std::string>& variables) {
    const std::vector<const Place*> entries = TRY(elements({"process", "env"}));
    for (const std::string& variable : variables) {
      const std::string name = variable.substr(0, variable.find('=') + 1);
      bool is_there = false;
      for (const Place* entry : entries) {
        const Json value = value_of(*entry);
        if (!value.is_string() || !value.get_ref<const std::string&>().starts_with(name)) {
          continue;
        }
        is_there = true;
        if (value != variable) {
          splices_.replace(entry->begin, entry->end, dump(variable));
        }
      }
      if (!is_there) {
        additions_["process"]["env"].push_back(variable);
      }
    }
    return {};
  }

  Result<void> add_nodes(const std::vector<NodeEdit>& nodes) {
    const std::vector<const Place*> entries = TRY(elements({"linux", "devices"}));
    const std::vector<const Place*> rules = TRY(elements({"linux", "resources", "devices"}));
    const Place* list = TRY(find({"linux", "resources", "devices"}));
    const device::OciRules listed =
        list == nullptr ? device::OciRules() : TRY(parse_device_rules(places_.text_of(*list)));
    const device::Table allowed = meaning(listed, device::OciReading::later_wins);
    for (const NodeEdit& node : nodes) {
      if (!node.device) {
        return fail(std::errc::invalid_argument, node.path + ": its device numbers are not known");
      }
      const std::optional<device::Device> old = TRY(add_node(node, entries));
      const bool is_allowed = node.access == device::Access::none || allowed.allows({*node.device, node.access});
      if (!is_allowed && !(old && TRY(correct_rule(*old, *node.device, rules)))) {
        additions_["linux"]["resources"]["devices"].push_back(json_of_rule(*node.device, node.access));
      }
    }
    return {};
  }

  // Returns the stale numbers of a device node that the text had already; absent where they are current.
  Result<std::optional<device::Device>> add_node(const NodeEdit& node, const std::vector<const Place*>& entries) {
    for (const Place* entry : entries) {
      const Json value = value_of(*entry);
      if (!value.is_object() || value.value("path", Json()) != node.path) {
        continue;
      }
      const auto number_in = [&value](const char* name) {
        const Json number = value.value(name, Json(0));
        return number.is_number_integer() ? number.get<std::uint32_t>() : 0;
      };
      const device::Device old{value.value("type", Json()) == "b" ? device::Kind::block : device::Kind::character,
                               number_in("major"), number_in("minor")};
      if (old == *node.device) {
        return std::nullopt;
      }
      TRY(set_numbers(*entry, *node.device));
      corrected_.push_back(node.path + ": " + to_string(old) + " → " + to_string(*node.device));
      return old;
    }
    additions_["linux"]["devices"].push_back(json_of_node(node));
    return std::nullopt;
  }

  Result<void> set_numbers(const Place& object, const device::Device& device) {
    for (const auto& [name, value] :
         {std::pair<const char*, Json>("type", type_of(device)), std::pair<const char*, Json>("major", device.major),
          std::pair<const char*, Json>("minor", device.minor)}) {
      const Place* place = TRY(places_.member(object, name));
      if (place != nullptr) {
        splices_.replace(place->begin, place->end, dump(value));
      } else {
        splices_.insert(object.begin + 1, dump(name) + ":" + dump(value) + ",");
      }
    }
    return {};
  }

  // Changes the rule that allows the stale numbers to the current ones. False where there is no such rule.
  Result<bool> correct_rule(const device::Device& old, const device::Device& current,
                            const std::vector<const Place*>& rules) {
    for (const Place* rule : rules) {
      const Json value = value_of(*rule);
      const bool is_it = value.is_object() && value.value("allow", Json()) == true &&
                         value.value("type", Json()) == type_of(old) && value.value("major", Json()) == old.major &&
                         value.value("minor", Json()) == old.minor;
      if (is_it) {
        TRY(set_numbers(*rule, current));
        return true;
      }
    }
    return false;
  }

  // A driver has 40 files and more, all with the same options: they are written as text.
  Result<void> add_mounts(const std::vector<MountEdit>& mounts) {
    const Place* const list = TRY(find({"mounts"}));
    if (list != nullptr && list->kind != JsonPlaces::Kind::array) {
      return mounts.empty() ? Result<void>()
                            : fail(std::errc::invalid_argument,
                                   "config.json.mounts is neither a list nor an object, as it has to be");
    }
    const std::set<Mount> there = list == nullptr ? std::set<Mount>() : mounts_in(*list);
    std::string text;
    std::string options;
    const std::vector<std::string>* rendered = nullptr;
    for (const MountEdit& mount : mounts) {
      if (there.contains({mount.destination, mount.source})) {
        continue;
      }
      if (rendered == nullptr || *rendered != mount.options) {
        rendered = &mount.options;
        options = dump(mount.options);
      }
      text += (text.empty() ? "" : ",") + text_of_mount(mount, options);
    }
    if (text.empty()) {
      return {};
    }
    if (list == nullptr) {
      additions_["mounts"] = parse_value("[" + text + "]");
    } else {
      splices_.insert(list->end - 1, (list->first == 0 ? "" : ",") + text);
    }
    return {};
  }

  using Mount = std::pair<std::string, std::string>;  // destination and source

  [[nodiscard]] std::set<Mount> mounts_in(const Place& list) const {
    std::set<Mount> mounts;
    for (const Place* entry : places_.children(list)) {
      const Json value = value_of(*entry);
      const Json* const destination = document::value_at(value, "destination");
      const Json* const source = document::value_at(value, "source");
      if (destination != nullptr && source != nullptr && destination->is_string() && source->is_string()) {
        mounts.emplace(destination->get<std::string>(), source->get<std::string>());
      }
    }
    return mounts;
  }

  Result<void> add_hooks(const std::vector<HookEdit>& hooks) {
    for (const HookEdit& hook : hooks) {
      const std::string stage = to_string(hook.stage);
      const Json wanted = json_of_hook(hook);
      const std::vector<const Place*> entries = TRY(elements({"hooks", stage}));
      const bool is_there = std::ranges::any_of(entries, [&](const Place* entry) {
        const Json value = value_of(*entry);
        return value.is_object() && value.value("path", Json()) == hook.path &&
               value.value("args", Json::array()) == wanted["args"];
      });
      if (!is_there) {
        additions_["hooks"][stage].push_back(wanted);
      }
    }
    return {};
  }

  Result<void> add_gids(const std::vector<std::uint32_t>& gids) {
    const std::vector<const Place*> entries = TRY(elements({"process", "user", "additionalGids"}));
    for (const std::uint32_t gid : gids) {
      if (std::ranges::none_of(entries, [&](const Place* entry) { return value_of(*entry) == gid; })) {
        additions_["process"]["user"]["additionalGids"].push_back(gid);
      }
    }
    return {};
  }

  Result<void> add_linux(const ContainerEdits& edits) {
    for (const auto& [name, name_inside] : edits.net_devices) {
      if (TRY(find({"linux", "netDevices", name})) == nullptr) {
        additions_["linux"]["netDevices"][name] = {{"name", name_inside}};
      }
    }
    if (edits.intel_rdt && TRY(find({"linux", "intelRdt"})) == nullptr) {
      additions_["linux"]["intelRdt"] = json_of_rdt(*edits.intel_rdt);
    }
    return {};
  }

  // Adds what is missing after the existing members and elements.
  Result<void> merge(const Place& place, const Json& more, const std::string& where) {
    if (more.empty()) {
      return {};
    }
    if (places_.text_of(place) == "null") {
      splices_.replace(place.begin, place.end, dump(more));
      return {};
    }
    const bool fits = (more.is_object() && place.kind == JsonPlaces::Kind::object) ||
                      (more.is_array() && place.kind == JsonPlaces::Kind::array);
    if (!fits) {
      return fail(std::errc::invalid_argument, where + " is neither a list nor an object, as it has to be");
    }
    std::string text;
    const auto add = [&](const std::string& one) { text += (text.empty() && place.first == 0 ? "" : ",") + one; };
    for (const auto& [name, value] : more.items()) {
      if (more.is_array()) {
        add(dump(value));
        continue;
      }
      const Place* member = TRY(places_.member(place, name));
      if (member != nullptr) {
        TRY(merge(*member, value, std::string(where).append(".").append(name)));
      } else {
        add(dump(name) + ":" + dump(value));
      }
    }
    if (!text.empty()) {
      splices_.insert(place.end - 1, text);
    }
    return {};
  }

  std::string_view text_;
  const JsonPlaces& places_;
  Json additions_ = Json::object();
  Splices splices_;
  std::vector<std::string> corrected_;
};

}  // namespace

Result<EditedSpec> edit_spec(std::string_view text, const SpecChange& change) {
  if (!document::is_json(text)) {
    return fail(std::errc::invalid_argument, "it is not JSON");
  }
  const std::string kept = TRY(drop_hooks(text, change.dropped_hooks));
  const JsonPlaces places = TRY(JsonPlaces::read(kept));
  return Editor(kept, places).edit(change.edits);
}

}  // namespace hf::oci
