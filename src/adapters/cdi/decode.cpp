#include "adapters/cdi/decode.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <nlohmann/json.hpp>

#include "adapters/cdi/version.h"
#include "adapters/document/json.h"
#include "core/base/text.h"

namespace hf::cdi {
namespace {

using container::ContainerEdits;
using document::Json;

enum class Unknown : std::uint8_t { refuse, ignore };

struct DecodeOptions {
  Scalars scalars = Scalars::typed;
  Unknown unknown = Unknown::refuse;
};

std::unexpected<Error> wrong(std::string why) { return fail(std::errc::invalid_argument, std::move(why)); }

// A number as YAML writes it: 438, 0666, 0o666, 0x1b6.
std::optional<std::uint32_t> parse_yaml_number(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0o")) {
    return parse_number<std::uint32_t>(text.substr(2), text[1] == 'x' ? 16 : 8);
  }
  return parse_number<std::uint32_t>(text, text.size() > 1 && text[0] == '0' ? 8 : 10);
}

// One map of the spec. The decoder asks for every field the map may have; a field it did not ask for is unknown.
class Fields {
 public:
  Fields(const Json& map, std::string where, DecodeOptions options)
      : map_(map), where_(std::move(where)), options_(options) {}

  [[nodiscard]] DecodeOptions options() const { return options_; }

  const Json* find(const char* key) {
    asked_.emplace_back(key);
    return document::value_at(map_, key);
  }

  Result<std::string> text(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) {
      return std::string();
    }
    return value->is_string() ? Result<std::string>(value->get<std::string>()) : wrong(named(key) + " is not a text");
  }

  Result<std::optional<std::uint32_t>> number(const char* key, std::uint32_t limit) {
    const Json* value = find(key);
    if (value == nullptr) {
      return std::nullopt;
    }
    const std::optional<std::uint32_t> number = number_of(*value);
    if (!number || *number > limit) {
      return wrong(named(key) + " " + quote(to_text(*value)) + " is not a number from 0 to " + std::to_string(limit));
    }
    return number;
  }

  Result<bool> flag(const char* key) {
    const Json* value = find(key);
    const bool is_text = value != nullptr && options_.scalars == Scalars::as_text && value->is_string();
    if (value == nullptr || value->is_boolean()) {
      return value != nullptr && value->get<bool>();
    }
    if (is_text && (*value == "true" || *value == "false")) {
      return *value == "true";
    }
    return wrong(named(key) + " is neither true nor false");
  }

  // The entries of a list; none if there is no such field.
  Result<std::vector<const Json*>> list(const char* key) {
    std::vector<const Json*> entries;
    const Json* value = find(key);
    if (value != nullptr && !value->is_array()) {
      return wrong(named(key) + " is not a list");
    }
    for (std::size_t i = 0; value != nullptr && i < value->size(); ++i) {
      entries.push_back(&(*value)[i]);
    }
    return entries;
  }

  Result<std::vector<std::string>> texts(const char* key) {
    std::vector<std::string> values;
    for (const Json* entry : TRY(list(key))) {
      if (!entry->is_string()) {
        return wrong(named(key) + " has an entry that is not a text");
      }
      values.push_back(entry->get<std::string>());
    }
    return values;
  }

  Result<std::vector<std::uint32_t>> numbers(const char* key) {
    std::vector<std::uint32_t> numbers;
    for (const Json* entry : TRY(list(key))) {
      const std::optional<std::uint32_t> number = number_of(*entry);
      if (!number) {
        return wrong(named(key) + " has an entry that is not a number: " + quote(to_text(*entry)));
      }
      numbers.push_back(*number);
    }
    return numbers;
  }

  [[nodiscard]] Result<void> end() const {
    for (auto entry = map_.begin(); entry != map_.end() && options_.unknown == Unknown::refuse; ++entry) {
      if (std::ranges::find(asked_, entry.key()) == asked_.end()) {
        return wrong("unknown field " + quote(entry.key()) + " in " + where_);
      }
    }
    return {};
  }

 private:
  [[nodiscard]] std::string named(const char* key) const { return where_ + ": " + key; }

  [[nodiscard]] std::optional<std::uint32_t> number_of(const Json& value) const {
    if (value.is_string() && options_.scalars == Scalars::as_text) {
      return parse_yaml_number(value.get_ref<const std::string&>());
    }
    const bool fits =
        value.is_number_unsigned() && value.get<std::uint64_t>() <= std::numeric_limits<std::uint32_t>::max();
    return fits ? std::optional(value.get<std::uint32_t>()) : std::nullopt;
  }

  static std::string to_text(const Json& value) {
    return value.is_string() ? value.get<std::string>() : document::render_json(value);
  }

  const Json& map_;
  std::string where_;
  DecodeOptions options_;
  std::vector<std::string_view> asked_;
};

Result<Fields> fields_of(const Json& json, const char* where, DecodeOptions options) {
  if (!json.is_object()) {
    return wrong(std::string(where) + " is not a map");
  }
  return Fields(json, where, options);
}

// CDI: without permissions every access is allowed, and "none" means no rule at all.
Result<device::Access> parse_permissions(const std::string& text) {
  if (text.empty()) {
    return device::Access::all;
  }
  device::Access access = device::Access::none;
  for (const char character : text == "none" ? std::string_view() : std::string_view(text)) {
    const Result<device::Access> bit = device::parse_access(std::string_view(&character, 1));
    if (!bit) {
      return wrong("deviceNodes: permissions " + quote(text) + " have characters other than r, w and m");
    }
    access = access | *bit;
  }
  return access;
}

// CDI: a major of 0 means that there is none; the host's device node is read when the container is created.
Result<container::NodeEdit> decode_node(const Json& json, DecodeOptions options) {
  Fields fields = TRY(fields_of(json, "deviceNodes", options));
  container::NodeEdit node;
  node.path = TRY(fields.text("path"));
  node.host_path = TRY(fields.text("hostPath"));
  if (!node.path.starts_with('/')) {
    return wrong("deviceNodes: path " + quote(node.path) + " is not absolute");
  }
  const std::string type = TRY(fields.text("type"));
  const std::uint32_t major = TRY(fields.number("major", device::kLastMajor)).value_or(0);
  const std::uint32_t minor = TRY(fields.number("minor", device::kLastMinor)).value_or(0);
  node.access = TRY(parse_permissions(TRY(fields.text("permissions"))));
  if (!type.empty() && type != "b" && type != "c" && type != "u" && type != "p") {
    return wrong("deviceNodes: type " + quote(type) + " is none of b, c, u and p");
  }
  if (type == "p") {
    node.access = device::Access::none;  // a named pipe is no device, so it needs no rule
  } else if (major != 0) {
    node.device = device::Device{type == "b" ? device::Kind::block : device::Kind::character, major, minor};
  }
  const std::optional<std::uint32_t> mode = TRY(fields.number("fileMode", std::numeric_limits<std::uint32_t>::max()));
  node.mode = mode ? std::optional(*mode & 07777U) : std::nullopt;
  node.uid = TRY(fields.number("uid", std::numeric_limits<std::uint32_t>::max()));
  node.gid = TRY(fields.number("gid", std::numeric_limits<std::uint32_t>::max()));
  TRY(fields.end());
  return node;
}

Result<container::MountEdit> decode_mount(const Json& json, DecodeOptions options) {
  Fields fields = TRY(fields_of(json, "mounts", options));
  container::MountEdit mount;
  mount.source = TRY(fields.text("hostPath"));
  mount.destination = TRY(fields.text("containerPath"));
  mount.options = TRY(fields.texts("options"));
  mount.type = TRY(fields.text("type"));
  if (mount.source.empty() || mount.destination.empty()) {
    return wrong("mounts: one without hostPath or containerPath");
  }
  TRY(fields.end());
  return mount;
}

Result<std::vector<std::string>> decode_environment(Fields& fields) {
  std::vector<std::string> variables = TRY(fields.texts("env"));
  for (const std::string& variable : variables) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos || equals == 0) {
      return wrong("env: " + quote(variable) + " is not NAME=value");
    }
  }
  return variables;
}

Result<container::HookEdit> decode_hook(const Json& json, DecodeOptions options) {
  Fields fields = TRY(fields_of(json, "hooks", options));
  container::HookEdit hook;
  const std::string name = TRY(fields.text("hookName"));
  const std::optional<container::HookStage> stage = container::parse_hook_stage(name);
  if (!stage) {
    return wrong("hooks: there is no hook called " + quote(name));
  }
  hook.stage = *stage;
  hook.path = TRY(fields.text("path"));
  if (hook.path.empty()) {
    return wrong("hooks: one without a path");
  }
  hook.arguments = TRY(fields.texts("args"));
  hook.environment = TRY(decode_environment(fields));
  const std::optional<std::uint32_t> timeout =
      TRY(fields.number("timeout", std::uint32_t(std::numeric_limits<int>::max())));
  hook.timeout = timeout ? std::optional(int(*timeout)) : std::nullopt;
  TRY(fields.end());
  return hook;
}

Result<container::IntelRdtEdit> decode_intel_rdt(const Json& json, DecodeOptions options) {
  Fields fields = TRY(fields_of(json, "intelRdt", options));
  container::IntelRdtEdit edit;
  edit.clos_id = TRY(fields.text("closID"));
  edit.l3_cache_schema = TRY(fields.text("l3CacheSchema"));
  edit.memory_schema = TRY(fields.text("memBwSchema"));
  edit.schemata = TRY(fields.texts("schemata"));
  edit.enables_cmt = TRY(fields.flag("enableCMT"));
  edit.enables_mbm = TRY(fields.flag("enableMBM"));
  edit.enables_monitoring = TRY(fields.flag("enableMonitoring"));
  TRY(fields.end());
  return edit;
}

Result<void> decode_net_device(const Json& json, DecodeOptions options, ContainerEdits& edits) {
  Fields fields = TRY(fields_of(json, "netDevices", options));
  const std::string on_host = TRY(fields.text("hostInterfaceName"));
  const std::string name = TRY(fields.text("name"));
  TRY(fields.end());
  if (on_host.empty() || name.empty()) {
    return wrong("netDevices: one without hostInterfaceName or name");
  }
  if (!edits.net_devices.emplace(on_host, name).second) {
    return wrong("netDevices: " + quote(on_host) + " twice");
  }
  return {};
}

Result<ContainerEdits> decode_edits(const Json* json, DecodeOptions options) {
  ContainerEdits edits;
  if (json == nullptr) {
    return edits;
  }
  Fields fields = TRY(fields_of(*json, "containerEdits", options));
  edits.environment = TRY(decode_environment(fields));
  for (const Json* node : TRY(fields.list("deviceNodes"))) {
    edits.nodes.push_back(TRY(decode_node(*node, options)));
  }
  for (const Json* device : TRY(fields.list("netDevices"))) {
    TRY(decode_net_device(*device, options, edits));
  }
  for (const Json* mount : TRY(fields.list("mounts"))) {
    edits.mounts.push_back(TRY(decode_mount(*mount, options)));
  }
  for (const Json* hook : TRY(fields.list("hooks"))) {
    edits.hooks.push_back(TRY(decode_hook(*hook, options)));
  }
  edits.gids = TRY(fields.numbers("additionalGIDs"));
  if (const Json* intel_rdt = fields.find("intelRdt"); intel_rdt != nullptr) {
    edits.intel_rdt = TRY(decode_intel_rdt(*intel_rdt, options));
  }
  TRY(fields.end());
  return edits;
}

Result<Annotations> decode_annotations(Fields& fields) {
  Annotations annotations;
  const Json* json = fields.find("annotations");
  if (json == nullptr) {
    return annotations;
  }
  if (!json->is_object()) {
    return wrong("annotations is not a map");
  }
  for (auto entry = json->begin(); entry != json->end(); ++entry) {
    if (!entry->is_string()) {
      return wrong("annotations: " + quote(entry.key()) + " is not a text");
    }
    annotations.emplace(entry.key(), entry->get<std::string>());
  }
  return annotations;
}

Result<void> decode_device(const Json& json, DecodeOptions options, Spec& spec) {
  Fields fields = TRY(fields_of(json, "devices", options));
  const std::string name = TRY(fields.text("name"));
  if (name.empty()) {
    return wrong("a device without a name");
  }
  Annotations annotations = TRY(decode_annotations(fields));
  ContainerEdits edits = TRY(decode_edits(fields.find("containerEdits"), options));
  TRY(fields.end());
  if (!spec.devices.emplace(name, std::move(edits)).second) {
    return wrong("two devices are called " + quote(name));
  }
  if (!annotations.empty()) {
    spec.device_annotations.emplace(name, std::move(annotations));
  }
  return {};
}

Result<Spec> decode_document(const Json& json, DecodeOptions options) {
  Fields head = TRY(fields_of(json, "the spec", options));
  Spec spec;
  spec.version = TRY(head.text("cdiVersion"));
  spec.kind = TRY(head.text("kind"));
  const std::optional<Version> version = parse_version(spec.version);
  if (!version || spec.kind.find('/') == std::string::npos) {
    return wrong("no cdiVersion of the form 0.5.0, or no kind of the form vendor/class");
  }
  options.unknown = *version > kNewest ? Unknown::ignore : Unknown::refuse;
  Fields fields = TRY(fields_of(json, "the spec", options));
  (void)fields.find("cdiVersion");
  (void)fields.find("kind");
  spec.annotations = TRY(decode_annotations(fields));
  spec.all = TRY(decode_edits(fields.find("containerEdits"), options));
  for (const Json* device : TRY(fields.list("devices"))) {
    TRY(decode_device(*device, options, spec));
  }
  TRY(fields.end());
  return spec;
}

}  // namespace

Result<Spec> decode_spec(std::string_view json, Scalars scalars) {
  constexpr std::size_t kDeepest = 200;  // an error shows the value, and writing it recurses
  if (document::json_depth(json) > kDeepest) {
    return fail(std::errc::value_too_large, "it is nested too deep");
  }
  try {
    return decode_document(Json::parse(json), {scalars});
  } catch (const Json::exception& error) {
    return wrong(error.what());
  }
}

}  // namespace hf::cdi
