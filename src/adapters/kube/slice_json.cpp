#include "adapters/kube/slice_json.h"

#include <type_traits>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "adapters/kube/quantity.h"
#include "core/base/text.h"

namespace hf::kube {
namespace {

using document::array_at;
using document::Json;
using document::object_at;
using document::OrderedJson;
using document::string_at;
using document::uint_at;
using document::value_at;
using resource::Attribute;
using resource::FoundSlice;
using resource::Pool;
using resource::PublishedDevice;
using resource::SemanticVersion;
using resource::SliceAction;

constexpr const char* kSlices = "/apis/resource.k8s.io/v1/resourceslices";
constexpr document::Limits kLimits{std::size_t(8) << 20U, 32};

OrderedJson json_of(const Attribute& attribute) {
  return std::visit(
      [](const auto& value) -> OrderedJson {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::string>) {
          return {{"string", value}};
        } else if constexpr (std::is_same_v<Value, std::int64_t>) {
          return {{"int", value}};
        } else if constexpr (std::is_same_v<Value, bool>) {
          return {{"bool", value}};
        } else {
          return {{"version", value.text}};
        }
      },
      attribute);
}

OrderedJson json_of(const PublishedDevice& device) {
  OrderedJson json = {{"name", device.name}};
  for (const auto& [name, attribute] : device.attributes) {
    json["attributes"][name] = json_of(attribute);
  }
  for (const auto& [name, bytes] : device.capacity) {
    json["capacity"][name] = {{"value", render_quantity(bytes)}};
  }
  return json;
}

std::optional<Attribute> attribute_of(const Json& json) {
  if (const std::optional<std::string> text = string_at(json, "string")) {
    return *text;
  }
  if (const std::optional<std::string> version = string_at(json, "version")) {
    return SemanticVersion{*version};
  }
  if (const std::optional<bool> is_true = document::bool_at(json, "bool")) {
    return *is_true;
  }
  const Json* const number = value_at(json, "int");
  return number != nullptr && number->is_number_integer() ? std::optional<Attribute>(number->get<std::int64_t>())
                                                          : std::nullopt;
}

// Returns false where the device has something that we would not write.
bool read_device(const Json& json, PublishedDevice& device) {
  device.name = string_at(json, "name").value_or("");
  bool is_readable = true;
  for (const auto& [name, value] : object_at(json, "attributes").items()) {
    if (std::optional<Attribute> attribute = attribute_of(value)) {
      device.attributes.emplace(name, *std::move(attribute));
    } else {
      is_readable = false;
    }
  }
  for (const auto& [name, value] : object_at(json, "capacity").items()) {
    const std::optional<std::uint64_t> bytes = parse_quantity(string_at(value, "value").value_or(""));
    is_readable = is_readable && bytes.has_value();
    device.capacity[name] = bytes.value_or(0);
  }
  return is_readable;
}

FoundSlice slice_of(const Json& json) {
  FoundSlice found;
  const Json& metadata = object_at(json, "metadata");
  const Json& spec = object_at(json, "spec");
  const Json& pool = object_at(spec, "pool");
  found.slice.name = string_at(metadata, "name").value_or("");
  found.resource_version = string_at(metadata, "resourceVersion").value_or("");
  for (const Json& owner : array_at(metadata, "ownerReferences")) {
    found.owner_uid = string_at(owner, "uid").value_or("");
  }
  found.pool = string_at(pool, "name").value_or("");
  found.slice.generation = uint_at(pool, "generation").value_or(0);
  found.slice.count = uint_at(pool, "resourceSliceCount").value_or(0);
  for (const Json& device : array_at(spec, "devices")) {
    found.is_readable = read_device(device, found.slice.devices.emplace_back()) && found.is_readable;
  }
  return found;
}

// Of what is part of a query: names of Kubernetes have no other characters.
std::string encode(std::string_view text) {
  std::string encoded;
  for (const char character : text) {
    encoded += character == '=' ? "%3D" : character == ',' ? "%2C" : std::string(1, character);
  }
  return encoded;
}

}  // namespace

std::string slices_path(const Pool& pool) {
  return std::string(kSlices) +
         "?limit=500&fieldSelector=" + encode("spec.driver=" + pool.driver + ",spec.nodeName=" + pool.node);
}

std::string slice_path(const std::string& name) { return name.empty() ? kSlices : std::string(kSlices) + "/" + name; }

std::string node_path(const std::string& node) { return "/api/v1/nodes/" + node; }

std::string render_slice(const Pool& pool, const resource::SliceStep& step) {
  OrderedJson metadata = {{"name", step.slice.name}};
  if (step.action == SliceAction::replace) {
    metadata["resourceVersion"] = step.resource_version;
  }
  if (!pool.node_uid.empty()) {  // the slices go with the node
    metadata["ownerReferences"] = OrderedJson::array(
        {{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", pool.node}, {"uid", pool.node_uid}, {"controller", true}}});
  }
  OrderedJson devices = OrderedJson::array();
  for (const PublishedDevice& device : step.slice.devices) {
    devices.push_back(json_of(device));
  }
  const OrderedJson whole = {
      {"apiVersion", "resource.k8s.io/v1"},
      {"kind", "ResourceSlice"},
      {"metadata", std::move(metadata)},
      {"spec",
       {{"driver", pool.driver},
        {"nodeName", pool.node},
        {"pool",
         {{"name", pool.node}, {"generation", step.slice.generation}, {"resourceSliceCount", step.slice.count}}},
        {"devices", std::move(devices)}}}};
  return document::render_json(whole);
}

Result<std::vector<FoundSlice>> parse_slices(const Pool& pool, std::string_view json) {
  const Json list = TRY(document::parse_object(json, "the list of ResourceSlices", kLimits));
  if (!list.contains("items")) {
    return fail(std::errc::invalid_argument, "parse the list of ResourceSlices: it has no \"items\"");
  }
  std::vector<FoundSlice> found;
  for (const Json& item : array_at(list, "items")) {
    const Json& spec = object_at(item, "spec");
    if (string_at(spec, "driver") == pool.driver && string_at(spec, "nodeName") == pool.node) {
      found.push_back(slice_of(item));
    }
  }
  return found;
}

Result<std::string> parse_uid(std::string_view json) {
  const Json object = TRY(document::parse_object(json, "the answer of the API server", kLimits));
  std::optional<std::string> uid = string_at(object_at(object, "metadata"), "uid");
  return uid && !uid->empty() ? Result<std::string>(*std::move(uid))
                              : fail(std::errc::invalid_argument, "the answer of the API server has no UID");
}

std::string refusal_in(unsigned status, std::string_view body) {
  constexpr std::size_t kMost = 300;
  std::string message;
  if (const Result<Json> object = document::parse_object(body, "Status", kLimits)) {
    message = string_at(*object, "message").value_or("");
  }
  return "the API server answers " + std::to_string(status) + (message.empty() ? "" : ": ") +
         printable(cut_to(message, kMost));
}

}  // namespace hf::kube
