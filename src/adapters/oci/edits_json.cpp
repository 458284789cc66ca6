#include "adapters/oci/edits_json.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"

namespace hf::oci {

using container::HookEdit;
using container::MountEdit;
using container::NodeEdit;
using Json = document::OrderedJson;

namespace {

std::string dump(const Json& json) { return document::render_json(json); }

}  // namespace

std::string type_of(const device::Device& device) { return {device::kind_character(device.kind)}; }

Json json_of_rule(const device::Device& device, device::Access access) {
  return {{"allow", true},
          {"type", type_of(device)},
          {"major", device.major},
          {"minor", device.minor},
          {"access", to_string(access)}};
}

Json json_of_node(const NodeEdit& node) {
  Json json = {{"path", node.path},
               {"type", type_of(*node.device)},
               {"major", node.device->major},
               {"minor", node.device->minor}};
  for (const auto& [name, value] :
       {std::pair("fileMode", node.mode), std::pair("uid", node.uid), std::pair("gid", node.gid)}) {
    if (value) {
      json[name] = *value;
    }
  }
  return json;
}

std::string text_of_mount(const MountEdit& mount, const std::string& options) {
  return R"({"destination":)" + dump(mount.destination) + R"(,"type":)" +
         dump(mount.type.empty() ? "bind" : mount.type) + R"(,"source":)" + dump(mount.source) + R"(,"options":)" +
         options + "}";
}

Json json_of_hook(const HookEdit& hook) {
  Json json = {{"path", hook.path}, {"args", hook.arguments}, {"env", Json::array({container::kHookPath})}};
  if (!hook.environment.empty()) {
    json["env"] = hook.environment;
  }
  if (hook.timeout) {
    json["timeout"] = *hook.timeout;
  }
  return json;
}

Json json_of_rdt(const container::IntelRdtEdit& rdt) {
  Json json = Json::object();
  for (const auto& [name, text] : {std::pair("closID", &rdt.clos_id), std::pair("l3CacheSchema", &rdt.l3_cache_schema),
                                   std::pair("memBwSchema", &rdt.memory_schema)}) {
    if (!text->empty()) {
      json[name] = *text;
    }
  }
  if (!rdt.schemata.empty()) {
    json["schemata"] = rdt.schemata;
  }
  for (const auto& [name, is_on] : {std::pair("enableCMT", rdt.enables_cmt), std::pair("enableMBM", rdt.enables_mbm),
                                    std::pair("enableMonitoring", rdt.enables_monitoring)}) {
    if (is_on) {
      json[name] = true;
    }
  }
  return json;
}

}  // namespace hf::oci
