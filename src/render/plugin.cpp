#include "render/plugin.h"

#include <nlohmann/json.hpp>

namespace hf::report {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const resource::Allocation& allocation) {
  Json mounts = Json::array();
  for (const resource::AllocatedMount& mount : allocation.mounts) {
    mounts.push_back({{"container_path", mount.container_path},
                      {"host_path", mount.host_path},
                      {"is_read_only", mount.is_read_only}});
  }
  return {{"environment", allocation.environment},
          {"mounts", std::move(mounts)},
          {"nodes", allocation.nodes},
          {"annotations", allocation.annotations},
          {"cdi_devices", allocation.cdi_devices}};
}

Json json_of(const resource::OfferedDevice& device, const Result<resource::Allocation>& allocation) {
  Json json = {{"id", device.id}, {"health", device.is_healthy() ? "Healthy" : "Unhealthy"}};
  if (device.problem) {
    json["problem"] = *device.problem;
  }
  if (device.numa) {
    json["numa"] = *device.numa;
  }
  if (allocation) {
    json["allocation"] = json_of(*allocation);
  }
  return json;
}

Json json_of(const resource::OfferStatus& status) {
  Json devices = Json::array();
  for (const resource::OfferedDevice& device : status.offer.devices) {
    Json& json = devices.emplace_back(Json{{"id", device.id}, {"unit", device.unit}});
    json["health"] = device.is_healthy() ? "Healthy" : "Unhealthy";
    if (device.problem) {
      json["problem"] = *device.problem;
    }
  }
  return {{"resource", status.offer.resource},
          {"connected", status.is_connected},
          {"allocated", status.allocated},
          {"refused", status.refused},
          {"devices", std::move(devices)}};
}

}  // namespace

std::string render_json(const std::vector<resource::OfferStatus>& offers) {
  Json list = Json::array();
  for (const resource::OfferStatus& status : offers) {
    list.push_back(json_of(status));
  }
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string render_json(const PluginReport& report) {
  Json resources = Json::array();
  for (const PluginReport::Resource& one : report.resources) {
    Json devices = Json::array();
    for (std::size_t i = 0; i < one.offer.devices.size(); ++i) {
      devices.push_back(json_of(one.offer.devices[i], one.allocations[i]));
    }
    resources.push_back({{"resource", one.offer.resource},
                         {"class", one.offer.device_class},
                         {"replicas", one.offer.replicas},
                         {"devices", std::move(devices)}});
  }
  const Json json = {{"version", 1}, {"resources", std::move(resources)}, {"notes", report.notes}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hf::report
