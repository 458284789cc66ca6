#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "adapters/cdi/spec.h"
#include "adapters/document/json.h"

namespace hf::cdi {
namespace {

using container::ContainerEdits;
using Json = document::OrderedJson;

void put_text(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) {
    json[key] = text;
  }
}

template <class Value>
void put_list(Json& json, const char* key, const std::vector<Value>& values) {
  if (!values.empty()) {
    json[key] = values;
  }
}

template <class Value>
void put_number(Json& json, const char* key, const std::optional<Value>& number) {
  if (number) {
    json[key] = *number;
  }
}

Json json_of(const container::NodeEdit& node) {
  Json json = {{"path", node.path}};
  put_text(json, "hostPath", node.host_path);
  if (node.device) {
    json["type"] = std::string(1, device::kind_character(node.device->kind));
    json["major"] = node.device->major;
    json["minor"] = node.device->minor;
  }
  put_number(json, "fileMode", node.mode);
  if (node.access != device::Access::all) {
    json["permissions"] = node.access == device::Access::none ? "none" : to_string(node.access);
  }
  put_number(json, "uid", node.uid);
  put_number(json, "gid", node.gid);
  return json;
}

Json json_of(const container::MountEdit& mount) {
  Json json = {{"hostPath", mount.source}, {"containerPath", mount.destination}};
  put_text(json, "type", mount.type);
  put_list(json, "options", mount.options);
  return json;
}

Json json_of(const container::HookEdit& hook) {
  Json json = {{"hookName", to_string(hook.stage)}, {"path", hook.path}};
  put_list(json, "args", hook.arguments);
  put_list(json, "env", hook.environment);
  put_number(json, "timeout", hook.timeout);
  return json;
}

Json json_of(const container::IntelRdtEdit& edit) {
  Json json = Json::object();
  put_text(json, "closID", edit.clos_id);
  put_text(json, "l3CacheSchema", edit.l3_cache_schema);
  put_text(json, "memBwSchema", edit.memory_schema);
  put_list(json, "schemata", edit.schemata);
  for (const auto& [key, flag] : {std::pair("enableCMT", edit.enables_cmt), std::pair("enableMBM", edit.enables_mbm),
                                  std::pair("enableMonitoring", edit.enables_monitoring)}) {
    if (flag) {
      json[key] = true;
    }
  }
  return json;
}

template <class Value>
void put_each(Json& json, const char* key, const std::vector<Value>& values) {
  for (const Value& value : values) {
    json[key].push_back(json_of(value));
  }
}

Json json_of(const ContainerEdits& edits) {
  Json json = Json::object();
  put_list(json, "env", edits.environment);
  put_each(json, "deviceNodes", edits.nodes);
  for (const auto& [on_host, name] : edits.net_devices) {
    json["netDevices"].push_back({{"hostInterfaceName", on_host}, {"name", name}});
  }
  put_each(json, "mounts", edits.mounts);
  put_each(json, "hooks", edits.hooks);
  put_list(json, "additionalGIDs", edits.gids);
  if (edits.intel_rdt) {
    json["intelRdt"] = json_of(*edits.intel_rdt);
  }
  return json;
}

Json json_of(const NewSpec& spec) {
  Spec whole;
  whole.kind = spec.kind;
  whole.all = spec.all;
  whole.devices = {spec.devices.begin(), spec.devices.end()};
  Json json = {{"cdiVersion", required_version(whole).version}, {"kind", spec.kind}};
  json["devices"] = Json::array();
  for (const auto& [name, edits] : spec.devices) {
    json["devices"].push_back({{"name", name}, {"containerEdits", json_of(edits)}});
  }
  if (!spec.all.is_empty()) {
    json["containerEdits"] = json_of(spec.all);
  }
  return json;
}

// Text that YAML would read as another type is quoted; JSON's quoting is valid in YAML.
bool is_plain(const std::string& text) {
  constexpr std::array<std::string_view, 8> kReserved = {"true", "false", "yes", "no", "on", "off", "null", "none"};
  std::string lower = text;
  std::ranges::transform(lower, lower.begin(), [](unsigned char character) { return char(std::tolower(character)); });
  const auto is_harmless = [](unsigned char character) {
    return std::isalnum(character) != 0 || std::string_view("/._-=,").find(char(character)) != std::string_view::npos;
  };
  return text.size() > 1 && (std::isalpha(static_cast<unsigned char>(text[0])) != 0 || text[0] == '/') &&
         std::ranges::all_of(text, is_harmless) && std::ranges::find(kReserved, lower) == kReserved.end();
}

std::string leaf(const Json& json) {
  const bool is_unquoted = json.is_string() && is_plain(json.get_ref<const std::string&>());
  return is_unquoted ? json.get<std::string>() : document::render_json(json);
}

void write_yaml(const Json& json, const std::string& indent, std::string& text) {
  for (auto entry = json.begin(); entry != json.end(); ++entry) {
    if (json.is_object()) {
      text += indent + entry.key() + ":";
    } else {
      text += indent + "-";
    }
    if (!entry->is_structured() || entry->empty()) {
      text += " " + leaf(*entry) + "\n";
    } else if (json.is_array()) {
      std::string below;
      write_yaml(*entry, indent + "  ", below);
      text += " " + below.substr(indent.size() + 2);  // the first field follows the dash on the same line
    } else {
      text += "\n";
      write_yaml(*entry, indent + (entry->is_array() ? "" : "  "), text);
    }
  }
}

std::string dump_yaml(const Json& json) {
  std::string text = "---\n";
  write_yaml(json, "", text);
  return text;
}

}  // namespace

std::string render_yaml(const NewSpec& spec) { return dump_yaml(json_of(spec)); }
std::string render_json(const NewSpec& spec) { return document::render_json(json_of(spec), 2) + "\n"; }
std::string render_json(const ContainerEdits& edits) { return document::render_json(json_of(edits), 2) + "\n"; }
std::string render_yaml(const ContainerEdits& edits) { return dump_yaml(json_of(edits)); }

}  // namespace hf::cdi
