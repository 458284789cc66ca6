#include "adapters/oci/spec.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <limits>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "adapters/document/json_places.h"
#include "adapters/oci/oci_config.h"
#include "core/base/text.h"

namespace hf::oci {
namespace {

using document::array_at;
using document::Json;
using document::JsonPlaces;
using document::object_at;
using document::string_at;
using document::strings_at;
using document::value_at;
using document::Where;

constexpr const char* kFile = "parse config.json";

std::unexpected<Error> malformed(const std::string& where) {
  return fail(std::errc::invalid_argument, std::string(kFile) + ": " + where);
}

Result<std::uint32_t> number_at(const Json& object, std::string_view key, std::uint32_t limit, const Where& where) {
  return value_at(object, key) == nullptr ? 0 : std::uint32_t(TRY(document::require_uint(object, key, limit, where)));
}

Result<std::optional<SpecNode>> parse_node(const Json& entry, const Where& where) {
  constexpr std::uint32_t kBits = 0777;
  const std::string type = string_at(entry, "type").value_or("");
  if (type == "p") {
    return std::nullopt;  // a FIFO is no device
  }
  if (type != "c" && type != "b" && type != "u") {
    return malformed(where.path + ".type is not c, b, u or p");
  }
  SpecNode node;
  node.path = string_at(entry, "path").value_or("");
  if (!node.path.starts_with('/')) {
    return malformed(where.path + ".path is not an absolute path");
  }
  node.device.kind = type == "b" ? device::Kind::block : device::Kind::character;
  node.device.major = TRY(number_at(entry, "major", device::kLastMajor, where));
  node.device.minor = TRY(number_at(entry, "minor", device::kLastMinor, where));
  const auto small_number = [&entry](const char* key) {
    return document::uint_at(entry, key, std::numeric_limits<std::uint32_t>::max());
  };
  const std::optional<std::uint64_t> mode = small_number("fileMode");
  node.mode = mode ? std::optional(std::uint32_t(*mode) & kBits) : std::nullopt;
  node.uid = std::uint32_t(small_number("uid").value_or(0));
  node.gid = std::uint32_t(small_number("gid").value_or(0));
  return node;
}

Result<std::vector<SpecNode>> parse_nodes(const Json& linux) {
  std::vector<SpecNode> nodes;
  const Json* list = value_at(linux, "devices");
  if (list == nullptr) {
    return nodes;
  }
  if (!list->is_array()) {
    return malformed("linux.devices is not a list");
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const Where where{kFile, "linux.devices[" + std::to_string(i) + "]"};
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
  return parse_device_rules(document::write_json(list));
}

std::vector<Hook> parse_hooks(const Json& spec) {
  constexpr std::array<const char*, 6> kStages = {"prestart",       "createRuntime", "createContainer",
                                                  "startContainer", "poststart",     "poststop"};
  std::vector<Hook> hooks;
  for (const char* stage : kStages) {
    for (const Json& entry : array_at(object_at(spec, "hooks"), stage)) {
      hooks.push_back({stage, string_at(entry, "path").value_or(""), strings_at(entry, "args")});
    }
  }
  return hooks;
}

std::map<std::string, std::string> parse_environment(const Json& process) {
  std::map<std::string, std::string> environment;
  for (const std::string& entry : strings_at(process, "env")) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos) {
      environment[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
  }
  return environment;
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

Result<void> check_cases(const Json& spec) {
  TRY(check_case(spec, {"annotations", "process", "mounts", "hooks", "root", "linux"}));
  TRY(check_case(object_at(spec, "process"), {"env", "capabilities"}));
  return check_case(object_at(spec, "linux"), {"cgroupsPath", "devices", "resources"});
}

SpecCpu parse_cpu(const Json& cpu) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  SpecCpu parsed;
  parsed.time.shares = document::uint_at(cpu, "shares", kMost);
  parsed.time.period = document::uint_at(cpu, "period", kMost);
  if (const std::optional<std::uint64_t> quota = document::uint_at(cpu, "quota", kMost)) {
    parsed.time.quota = std::int64_t(*quota);  // a negative one means none
  }
  parsed.cpus = string_at(cpu, "cpus").value_or("");
  return parsed;
}

}  // namespace

Result<Spec> parse_spec(std::string_view json) {
  // The library writes JSON by recursion: values that are nested deeper than any bundle needs are dropped.
  constexpr document::Limits kLimits = {.depth = 64, .deeper = document::Deeper::dropped};
  const Json file = TRY(document::parse_object(json, "config.json", kLimits));
  TRY(check_cases(file));
  const Json& process = object_at(file, "process");
  const Json& linux = object_at(file, "linux");
  Spec spec;
  spec.annotations = document::string_map_at(file, "annotations");
  spec.environment = parse_environment(process);
  const std::vector<std::string> bounding = strings_at(object_at(process, "capabilities"), "bounding");
  spec.is_privileged = std::ranges::find(bounding, "CAP_SYS_ADMIN") != bounding.end();
  for (const Json& mount : array_at(file, "mounts")) {
    spec.mounts.push_back({string_at(mount, "destination").value_or(""), string_at(mount, "source").value_or("")});
  }
  spec.hooks = parse_hooks(file);
  spec.root = string_at(object_at(file, "root"), "path").value_or("");
  spec.cgroups_path = string_at(linux, "cgroupsPath").value_or("");
  spec.nodes = TRY(parse_nodes(linux));
  const Json* rules = value_at(object_at(linux, "resources"), "devices");
  spec.rules = rules == nullptr ? device::OciRules() : TRY(parse_rules(*rules));
  spec.cpu = parse_cpu(object_at(object_at(linux, "resources"), "cpu"));
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
  return string_at(document::parse_json(places.text_of(*root)).value_or(Json()), "path").value_or("");
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
