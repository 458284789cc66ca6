#include "adapters/oci/oci_config.h"

#include <cstdint>
#include <limits>
#include <optional>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"

namespace hf::oci {
namespace {

using device::Access;
using device::Kind;
using device::OciRule;
using device::OciRules;
using device::Rule;
using device::Span;
using device::Verb;
using document::Json;
using document::value_at;

std::unexpected<Error> malformed(std::size_t index, const std::string& why) {
  return fail(std::errc::invalid_argument, "parse OCI device rule " + std::to_string(index) + ": " + why);
}

// Absent, null and -1 mean any; older configs write -1. nlohmann compares 2^64-1 as equal to -1, so -1 must be signed.
Result<std::optional<Span>> parse_number(const Json& rule, const char* key, std::uint32_t limit, std::size_t index) {
  const Json* entry = value_at(rule, key);
  const bool is_signed = entry != nullptr && entry->is_number_integer() && !entry->is_number_unsigned();
  if (entry == nullptr || (is_signed && *entry == -1)) {
    return std::nullopt;
  }
  if (!entry->is_number_integer() || *entry < 0 || *entry > limit) {
    return malformed(index, std::string("\"") + key + "\" is not a number from 0 to " + std::to_string(limit));
  }
  const auto number = entry->get<std::uint32_t>();
  return Span{number, number};
}

Result<std::optional<Kind>> parse_kind(const Json& rule, std::size_t index) {
  const Json* entry = value_at(rule, "type");
  const std::string type = entry == nullptr ? "a" : entry->is_string() ? entry->get<std::string>() : "?";
  if (type == "a" || type.empty()) {
    return std::nullopt;
  }
  if (type == "b" || type == "c") {
    return type == "b" ? Kind::block : Kind::character;
  }
  return malformed(index, "\"type\" is not a, b or c");
}

Result<Access> parse_rule_access(const Json& rule, std::size_t index) {
  const Json* entry = value_at(rule, "access");
  if (entry == nullptr) {
    return Access::all;
  }
  const Result<Access> access =
      entry->is_string() ? device::parse_access(entry->get_ref<const std::string&>()) : Result<Access>(Access::none);
  if (!access || *access == Access::none) {
    return malformed(index, "\"access\" is not a combination of r, w and m");
  }
  return *access;
}

Result<OciRule> parse_rule(const Json& rule, std::size_t index) {
  if (!rule.is_object()) {
    return malformed(index, "not an object");
  }
  const std::optional<bool> allow = document::bool_at(rule, "allow");
  if (!allow) {
    return malformed(index, "\"allow\" is not true or false");
  }
  const std::optional<Kind> kind = TRY(parse_kind(rule, index));
  const std::optional<Span> major = TRY(parse_number(rule, "major", device::kLastMajor, index));
  const std::optional<Span> minor = TRY(parse_number(rule, "minor", device::kLastMinor, index));
  const Access access = TRY(parse_rule_access(rule, index));
  return OciRule{*allow ? Verb::allow : Verb::deny, Rule{{kind, major, minor}, access, device::Match::within}};
}

const Json* list_in(const Json& file) {
  const Json& resources = document::object_at(document::object_at(file, "linux"), "resources");
  const Json* list = file.is_array() ? &file : value_at(resources, "devices");
  return list != nullptr && list->is_array() ? list : nullptr;
}

}  // namespace

Result<OciRules> parse_device_rules(std::string_view json) {
  const Result<Json> file = document::parse_json(json);
  if (!file) {
    return fail(std::errc::invalid_argument, "parse OCI device rules: not JSON");
  }
  const Json* list = list_in(*file);
  if (list == nullptr) {
    return fail(std::errc::invalid_argument, "parse OCI device rules: no list, and no linux.resources.devices");
  }
  OciRules rules;
  for (std::size_t i = 0; i < list->size(); ++i) {
    rules.push_back(TRY(parse_rule((*list)[i], i)));
  }
  return rules;
}

}  // namespace hf::oci
