// Edits of a config.json: nothing but the edits changes, and applying them twice is the same as once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "adapters/oci/edit_spec.h"
#include "check.h"

namespace {

using namespace hf;
using Json = nlohmann::json;

const oci::SpecChange& change() {
  static const oci::SpecChange kChange = {
      {.environment = {"HF_FUZZ=1"},
       .nodes = {{.path = "/dev/hf-fuzz", .device = device::Device{device::Kind::character, 4000, 7}}},
       .mounts = {{"/hf-fuzz", "/hf-fuzz", "", {"ro"}}},
       .hooks = {{container::HookStage::create_container, "/hf-fuzz", {"hf-fuzz"}}},
       .gids = {4242}},
      {}};
  return kChange;
}

bool is_ours(const Json& value) {
  if (value == 4242 || value == "HF_FUZZ=1") {
    return true;
  }
  if (!value.is_object()) {
    return false;
  }
  const bool is_rule = value.value("major", Json()) == 4000 && value.value("minor", Json()) == 7;
  return is_rule || value.value("path", Json()) == "/dev/hf-fuzz" || value.value("path", Json()) == "/hf-fuzz" ||
         value.value("destination", Json()) == "/hf-fuzz";
}

// Removes our edits from a list.
void strip(Json& list) {
  if (list.is_array()) {
    list.erase(std::remove_if(list.begin(), list.end(), is_ours), list.end());
  }
}

Json& at(Json& json, const char* key) {
  static Json nothing;
  nothing = Json();
  return json.is_object() && json.contains(key) ? json[key] : nothing;
}

void strip_all(Json& spec) {
  strip(at(at(spec, "process"), "env"));
  strip(at(at(at(spec, "process"), "user"), "additionalGids"));
  strip(at(at(spec, "linux"), "devices"));
  strip(at(at(at(spec, "linux"), "resources"), "devices"));
  strip(at(spec, "mounts"));
  strip(at(at(spec, "hooks"), "createContainer"));
}

void drop_if_empty(Json& parent, const char* key) {
  if (parent.is_object() && parent.contains(key) && (parent[key].is_null() || parent[key].empty())) {
    parent.erase(key);
  }
}

void prune(Json& spec) {
  drop_if_empty(at(at(spec, "process"), "user"), "additionalGids");
  drop_if_empty(at(spec, "process"), "env");
  drop_if_empty(at(spec, "process"), "user");
  drop_if_empty(at(at(spec, "linux"), "resources"), "devices");
  drop_if_empty(at(spec, "linux"), "resources");
  drop_if_empty(at(spec, "linux"), "devices");
  drop_if_empty(at(spec, "hooks"), "createContainer");
  for (const char* key : {"process", "linux", "hooks", "mounts"}) {
    drop_if_empty(spec, key);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<oci::EditedSpec> once = oci::edit_spec(text, change());
  if (!once) {
    return 0;
  }
  Json before = Json::parse(text);
  Json after = Json::parse(once->text, nullptr, false);
  check(!after.is_discarded(), "the edited text is JSON");
  const Result<oci::EditedSpec> twice = oci::edit_spec(once->text, change());
  check(twice && twice->text == once->text, "applying the edits twice is the same as once");
  const bool is_plain = text.find("4000") == std::string_view::npos && text.find("hf-fuzz") == std::string_view::npos &&
                        text.find("4242") == std::string_view::npos && text.find("HF_FUZZ") == std::string_view::npos &&
                        text.find('\\') == std::string_view::npos && before.is_object();
  if (is_plain) {
    strip_all(after);
    prune(after);
    prune(before);
    check(after == before, "nothing but the edits was changed");
  }
  return 0;
}
