#include "adapters/journal/plugin_status.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"

namespace hf::journal {
namespace {

using document::Json;
using document::OrderedJson;

OrderedJson json_of(const resource::OfferedDevice& device) {
  OrderedJson json = {{"id", device.id},
                      {"device", device.device},
                      {"unit", device.unit},
                      {"nodes", device.nodes},
                      {"is_healthy", device.is_healthy()}};
  if (device.numa) {
    json["numa"] = *device.numa;
  }
  if (device.problem) {
    json["problem"] = *device.problem;
  }
  return json;
}

Result<resource::OfferedDevice> parse_device(const Json& json) {
  resource::OfferedDevice device;
  device.id = TRY(document::require_string(json, "id", {kPluginStatusFile}));
  device.device = TRY(document::require_string(json, "device", {kPluginStatusFile}));
  device.unit = TRY(document::require_string(json, "unit", {kPluginStatusFile}));
  device.nodes = TRY(document::require_strings(json, "nodes", {kPluginStatusFile}));
  if (const std::optional<std::uint64_t> numa = document::uint_at(json, "numa", std::numeric_limits<int>::max())) {
    device.numa = int(*numa);
  }
  device.problem = document::string_at(json, "problem");
  return device;
}

Result<resource::OfferStatus> parse_offer(const Json& json) {
  resource::OfferStatus status;
  status.offer.resource = TRY(document::require_string(json, "resource", {kPluginStatusFile}));
  status.offer.device_class = TRY(document::require_string(json, "class", {kPluginStatusFile}));
  status.is_connected = document::bool_at(json, "is_connected").value_or(false);
  status.offer.replicas = unsigned(document::uint_at(json, "replicas", 1'000'000).value_or(1));
  status.allocated = document::uint_at(json, "allocated").value_or(0);
  status.refused = document::uint_at(json, "refused").value_or(0);
  for (const Json& device : document::array_at(json, "devices")) {
    status.offer.devices.push_back(TRY(parse_device(device)));
  }
  return status;
}

}  // namespace

std::string render_plugin_status(const PluginStatus& status) {
  OrderedJson resources = OrderedJson::array();
  for (const resource::OfferStatus& one : status.resources) {
    OrderedJson devices = OrderedJson::array();
    for (const resource::OfferedDevice& device : one.offer.devices) {
      devices.push_back(json_of(device));
    }
    resources.push_back({{"resource", one.offer.resource},
                         {"class", one.offer.device_class},
                         {"is_connected", one.is_connected},
                         {"replicas", one.offer.replicas},
                         {"allocated", one.allocated},
                         {"refused", one.refused},
                         {"devices", std::move(devices)}});
  }
  OrderedJson json = to_json(status.program);
  json["resources"] = std::move(resources);
  return document::render_json(json) + "\n";
}

Result<PluginStatus> parse_plugin_status(std::string_view text) {
  const Json json = TRY(document::parse_object(text, kPluginStatusFile));
  PluginStatus status;
  status.program = TRY(parse_program(json, kPluginStatusFile));
  for (const Json& one : document::array_at(json, "resources")) {
    status.resources.push_back(TRY(parse_offer(one)));
  }
  return status;
}

Result<void> write_plugin_status(const kernel::Host& host, const PluginStatus& status) {
  return write_run_file(host, "kube.json", render_plugin_status(status));
}

std::optional<PluginStatus> read_plugin_status(const kernel::Host& host) {
  return read_run_file(host, kPluginStatusFile, parse_plugin_status);
}

}  // namespace hf::journal
