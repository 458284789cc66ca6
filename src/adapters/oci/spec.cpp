#include "adapters/oci/spec.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <limits>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "adapters/document/json_places.h"
#include "adapters/document/json_view.h"
#include "adapters/oci/oci_config.h"
#include "core/base/text.h"

namespace hf::oci {
namespace {

using document::Json;
using document::JsonPlaces;
using document::JsonView;
using document::string_at;
using document::value_at;
using document::Where;

constexpr const char* kFile = "parse config.json";

std::unexpected<Error> malformed(const std::string& where) {
  return fail(std::errc::invalid_argument, std::string(kFile) + ": " + where);
}

bool is_utf8(std::string_view text) {
  const auto is_ascii = [](char character) { return (static_cast<unsigned char>(character) & 0x80U) == 0; };
  for (;;) {
    text.remove_prefix(std::size_t(std::ranges::find_if_not(text, is_ascii) - text.begin()));
    const std::size_t length = text.empty() ? 0 : length_of_character(text);
    if (length == 0) {
      return text.empty();
    }
    text.remove_prefix(length);
  }
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

Result<std::vector<SpecNode>> parse_nodes(const JsonView& view, const document::Limits& limits) {
  std::vector<SpecNode> nodes;
  if (view.is_nothing()) {
    return nodes;
  }
  const Json list = view.tree(limits);
  if (!list.is_array()) {
    return malformed("linux.devices is not a list");
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Where where{kFile, "linux.devices[" + std::to_string(i) + "]"};
    if (std::optional<SpecNode> node = TRY(parse_node(list[i], where))) {
      nodes.push_back(*std::move(node));
    }
  }
  return nodes;
}

// Only a flat list of flat objects is accepted: nothing deeper is a rule.
Result<device::OciRules> parse_rules(const JsonView& list) {
  const auto is_flat = [](const JsonView& rule) {
    return rule.is_object() && std::ranges::none_of(rule.members(), [](const auto& member) {
             return member.second.is_object() || member.second.is_array();
           });
  };
  if (!list.is_array() || !std::ranges::all_of(list.elements(), is_flat)) {
    return malformed("linux.resources.devices is not a list of rules");
  }
  return parse_device_rules(std::string(list.text()));
}

std::vector<Hook> parse_hooks(const JsonView& stages) {
  constexpr std::array<const char*, 6> kStages = {"prestart",       "createRuntime", "createContainer",
                                                  "startContainer", "poststart",     "poststop"};
  std::vector<Hook> hooks;
  for (const char* stage : kStages) {
    for (const JsonView& entry : stages.at(stage).elements()) {
      hooks.push_back({stage, entry.at("path").string().value_or(""), entry.at("args").strings(),
                       entry.at("env").strings(), parse_number<std::uint16_t>(entry.at("timeout").text())});
    }
  }
  return hooks;
}

std::map<std::string, std::string> parse_environment(const JsonView& list) {
  std::map<std::string, std::string> environment;
  for (const std::string& entry : list.strings()) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos) {
      environment[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
  }
  return environment;
}

std::map<std::string, std::string> parse_annotations(const JsonView& object) {
  std::map<std::string, std::string> annotations;
  for (const auto& [key, value] : object.members()) {
    annotations[key] = value.string().value_or("");
  }
  return annotations;
}

// Go matches keys in any case, this parser does not: refuses keys that only a runtime would read.
Result<void> check_case(const JsonView& object, std::initializer_list<std::string_view> keys) {
  const auto is_alike = [](std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b,
                              [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
  };
  for (const auto& [key, value] : object.members()) {
    for (const std::string_view known : keys) {
      if (key != known && is_alike(key, known)) {
        return malformed("it has " + quote(key) + ", which a runtime takes for " + quote(known));
      }
    }
  }
  return {};
}

Result<void> check_cases(const JsonView& spec) {
  TRY(check_case(spec, {"annotations", "process", "mounts", "hooks", "root", "linux"}));
  TRY(check_case(spec.at("process"), {"env", "capabilities"}));
  return check_case(spec.at("linux"), {"cgroupsPath", "devices", "namespaces", "resources"});
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
  parsed.mems = string_at(cpu, "mems").value_or("");
  return parsed;
}

}  // namespace

Result<Spec> parse_spec(std::string_view json) {
  // Values that are nested deeper than any bundle needs are refused where they matter, and passed over elsewhere.
  constexpr document::Limits kLimits = {.depth = 64};
  const Result<JsonPlaces> places = JsonPlaces::read(json);
  if (!places || places->root().kind != JsonPlaces::Kind::object || !is_utf8(json)) {
    TRY(document::parse_object(json, "config.json"));  // it says where the fault is
    return malformed("not a JSON object");
  }
  const JsonView file(*places);
  TRY(check_cases(file));
  const JsonView process = file.at("process");
  const JsonView linux = file.at("linux");
  Spec spec;
  spec.annotations = parse_annotations(file.at("annotations"));
  spec.environment = parse_environment(process.at("env"));
  const std::vector<std::string> bounding = process.at("capabilities").at("bounding").strings();
  spec.is_privileged = std::ranges::find(bounding, "CAP_SYS_ADMIN") != bounding.end();
  spec.may_create_nodes = std::ranges::find(bounding, "CAP_MKNOD") != bounding.end();
  spec.has_user_namespace = std::ranges::any_of(
      linux.at("namespaces").elements(), [](const JsonView& entry) { return entry.at("type").string() == "user"; });
  for (const JsonView& mount : file.at("mounts").elements()) {
    spec.mounts.push_back({mount.at("destination").string().value_or(""), mount.at("source").string().value_or("")});
  }
  spec.hooks = parse_hooks(file.at("hooks"));
  spec.root = file.at("root").at("path").string().value_or("");
  spec.cgroups_path = linux.at("cgroupsPath").string().value_or("");
  spec.nodes = TRY(parse_nodes(linux.at("devices"), kLimits));
  const JsonView rules = linux.at("resources").at("devices");
  spec.rules = rules.is_nothing() ? device::OciRules() : TRY(parse_rules(rules));
  spec.cpu = parse_cpu(linux.at("resources").at("cpu").tree(kLimits));
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
