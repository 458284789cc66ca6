#include "adapters/oci/spec.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>

#include <nlohmann/json.hpp>

#include "adapters/oci/json_places.h"
#include "adapters/oci/oci_config.h"
#include "core/base/text.h"

namespace hf::oci {
namespace {

using Json = nlohmann::json;

std::unexpected<Error> malformed(const std::string& where) {
  return fail(std::errc::invalid_argument, "parse config.json: " + where);
}

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) {
    return nullptr;
  }
  const auto entry = object.find(key);
  return entry == object.end() || entry->is_null() ? nullptr : &*entry;
}

std::string text_of(const Json& object, const char* key) {
  const Json* entry = member(object, key);
  return entry != nullptr && entry->is_string() ? entry->get<std::string>() : std::string();
}

Result<std::uint32_t> number_of(const Json& object, const char* key, std::uint32_t limit, const std::string& where) {
  const Json* entry = member(object, key);
  if (entry == nullptr) {
    return 0;
  }
  if (!entry->is_number_integer() || *entry < 0 || *entry > limit) {
    return malformed(where + "." + key + " is not a number from 0 to " + std::to_string(limit));
  }
  return entry->get<std::uint32_t>();
}

Result<std::optional<SpecNode>> parse_node(const Json& entry, const std::string& where) {
  const std::string type = text_of(entry, "type");
  if (type == "p") {
    return std::nullopt;  // a FIFO is no device
  }
  if (type != "c" && type != "b" && type != "u") {
    return malformed(where + ".type is not c, b, u or p");
  }
  SpecNode node;
  node.path = text_of(entry, "path");
  if (!node.path.starts_with('/')) {
    return malformed(where + ".path is not an absolute path");
  }
  node.device.kind = type == "b" ? device::Kind::block : device::Kind::character;
  node.device.major = TRY(number_of(entry, "major", device::kLastMajor, where));
  node.device.minor = TRY(number_of(entry, "minor", device::kLastMinor, where));
  const auto small_number = [&entry](const char* key) -> std::optional<std::uint32_t> {
    const Json* value = member(entry, key);
    const bool fits = value != nullptr && value->is_number_unsigned() && value->get<std::uint64_t>() <= 0xffffffffU;
    return fits ? std::optional(value->get<std::uint32_t>()) : std::nullopt;
  };
  constexpr std::uint32_t kBits = 0777;
  const std::optional<std::uint32_t> mode = small_number("fileMode");
  node.mode = mode ? std::optional(*mode & kBits) : std::nullopt;
  node.uid = small_number("uid").value_or(0);
  node.gid = small_number("gid").value_or(0);
  return node;
}

Result<std::vector<SpecNode>> parse_nodes(const Json& linux) {
  std::vector<SpecNode> nodes;
  const Json* list = member(linux, "devices");
  if (list == nullptr) {
    return nodes;
  }
  if (!list->is_array()) {
    return malformed("linux.devices is not a list");
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string where = "linux.devices[" + std::to_string(i) + "]";
    if (std::optional<SpecNode> node = TRY(parse_node((*list)[i], where))) {
      nodes.push_back(*std::move(node));
    }
  }
  return nodes;
}

// Only a flat list of flat objects is accepted: nothing deeper is a rule, and dump() recurses.
Result<device::OciRules> parse_rules(const Json& list) {
  const bool is_flat =
      list.is_array() && std::ranges::all_of(list, [](const Json& rule) {
        return rule.is_object() && std::ranges::none_of(rule, [](const Json& value) { return value.is_structured(); });
      });
  if (!is_flat) {
    return malformed("linux.resources.devices is not a list of rules");
  }
  return parse_device_rules(list.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::vector<std::string> texts_of(const Json* list) {
  std::vector<std::string> texts;
  if (list != nullptr && list->is_array()) {
    for (const Json& entry : *list) {
      if (entry.is_string()) {
        texts.push_back(entry.get<std::string>());
      }
    }
  }
  return texts;
}

std::vector<Hook> parse_hooks(const Json& document) {
  constexpr std::array<const char*, 6> kStages = {"prestart",       "createRuntime", "createContainer",
                                                  "startContainer", "poststart",     "poststop"};
  std::vector<Hook> hooks;
  const Json* stages = member(document, "hooks");
  for (const char* stage : kStages) {
    const Json* list = stages == nullptr ? nullptr : member(*stages, stage);
    if (list == nullptr || !list->is_array()) {
      continue;
    }
    for (const Json& entry : *list) {
      hooks.push_back({stage, text_of(entry, "path"), texts_of(member(entry, "args"))});
    }
  }
  return hooks;
}

// Go matches keys in any case, this parser does not: refuses keys that only a runtime would read.
Result<void> check_case(const Json& object, std::initializer_list<std::string_view> keys) {
  const auto is_alike = [](std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b,
                              [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
  };
  for (const auto& [key, value] : object.items()) {
    for (const std::string_view known : keys) {
      if (key != known && is_alike(key, known)) {
        return malformed("it has " + quote(key) + ", which a runtime takes for " + quote(known));
      }
    }
  }
  return {};
}

Result<void> check_cases(const Json& document) {
  TRY(check_case(document, {"annotations", "process", "mounts", "hooks", "root", "linux"}));
  if (const Json* process = member(document, "process"); process != nullptr && process->is_object()) {
    TRY(check_case(*process, {"env", "capabilities"}));
  }
  if (const Json* linux = member(document, "linux"); linux != nullptr && linux->is_object()) {
    TRY(check_case(*linux, {"cgroupsPath", "devices", "resources"}));
  }
  return {};
}

}  // namespace

Result<Spec> parse_spec(std::string_view json) {
  // The library writes JSON by recursion: values that are nested deeper than any bundle needs are dropped.
  constexpr int kDeepest = 64;
  const auto is_within_limit = [](int depth, Json::parse_event_t, Json&) { return depth < kDeepest; };
  const Json document = Json::parse(json, is_within_limit, /*allow_exceptions=*/false);
  if (document.is_discarded() || !document.is_object()) {
    return malformed("not a JSON object");
  }
  TRY(check_cases(document));
  Spec spec;
  if (const Json* annotations = member(document, "annotations"); annotations != nullptr && annotations->is_object()) {
    for (const auto& [key, value] : annotations->items()) {
      spec.annotations[key] = value.is_string() ? value.get<std::string>() : std::string();
    }
  }
  if (const Json* process = member(document, "process")) {
    for (const std::string& entry : texts_of(member(*process, "env"))) {
      const std::size_t equals = entry.find('=');
      if (equals != std::string::npos) {
        spec.environment[entry.substr(0, equals)] = entry.substr(equals + 1);
      }
    }
    const Json* capabilities = member(*process, "capabilities");
    const std::vector<std::string> bounding =
        capabilities == nullptr ? std::vector<std::string>() : texts_of(member(*capabilities, "bounding"));
    spec.is_privileged = std::ranges::find(bounding, "CAP_SYS_ADMIN") != bounding.end();
  }
  if (const Json* mounts = member(document, "mounts"); mounts != nullptr && mounts->is_array()) {
    for (const Json& mount : *mounts) {
      spec.mounts.push_back({text_of(mount, "destination"), text_of(mount, "source")});
    }
  }
  spec.hooks = parse_hooks(document);
  if (const Json* root = member(document, "root")) {
    spec.root = text_of(*root, "path");
  }
  if (const Json* linux = member(document, "linux")) {
    spec.cgroups_path = text_of(*linux, "cgroupsPath");
    spec.nodes = TRY(parse_nodes(*linux));
    const Json* resources = member(*linux, "resources");
    const Json* rules = resources == nullptr ? nullptr : member(*resources, "devices");
    spec.rules = rules == nullptr ? device::OciRules() : TRY(parse_rules(*rules));
  }
  return spec;
}

Result<std::string> parse_root(std::string_view json) {
  const JsonPlaces places = TRY(JsonPlaces::read(json));
  if (places.root().kind != JsonPlaces::Kind::object) {
    return malformed("it is no object");
  }
  const JsonPlaces::Place* root = TRY(places.member(places.root(), "root"));
  if (root == nullptr) {
    return std::string();
  }
  return text_of(Json::parse(places.text_of(*root), nullptr, /*allow_exceptions=*/false), "path");
}

std::string annotation_of(const Spec& spec, const std::string& key) {
  const auto found = spec.annotations.find(key);
  return found == spec.annotations.end() ? std::string() : found->second;
}

std::string environment_of(const Spec& spec, const std::string& name) {
  const auto found = spec.environment.find(name);
  return found == spec.environment.end() ? std::string() : found->second;
}

}  // namespace hf::oci
