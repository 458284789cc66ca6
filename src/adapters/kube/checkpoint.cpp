#include "adapters/kube/checkpoint.h"

#include <algorithm>
#include <array>

#include <google/protobuf/stubs/logging.h>
#include <nlohmann/json.hpp>

#include "adapters/kube/device_plugin.pb.h"
#include "core/base/text.h"

namespace hf::kube {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kCdiPrefix = "cdi.k8s.io/";

std::unexpected<Error> malformed(const std::string& what, const std::string& why) {
  return fail(std::errc::invalid_argument, "parse " + what + ": " + why);
}

Result<Json> parse_object(std::string_view text, const std::string& what) {
  Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded() || !document.is_object()) {
    return malformed(what, "not a JSON object");
  }
  return document;
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

std::optional<std::uint32_t> sextet_of(char character) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::size_t at = kAlphabet.find(character);
  return at == std::string_view::npos ? std::nullopt : std::optional(std::uint32_t(at));
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char character : text.substr(0, text.size() - padding)) {
    const std::optional<std::uint32_t> sextet = sextet_of(character);
    if (!sextet) {
      return std::nullopt;
    }
    bits = bits << 6 | *sextet;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += char(bits >> count & 0xff);
    }
  }
  return bytes;
}

// DeviceIDs: by NUMA node ({"0":["id"]}), in older files a plain list.
std::vector<std::string> ids_in(const Json* entry) {
  if (entry == nullptr || !entry->is_object()) {
    return texts_of(entry);
  }
  std::vector<std::string> ids;
  for (const auto& [numa, list] : entry->items()) {
    for (std::string& id : texts_of(&list)) {
      ids.push_back(std::move(id));
    }
  }
  return ids;
}

std::vector<std::string> keys_of(const Json* object) {
  std::vector<std::string> keys;
  if (object != nullptr && object->is_object()) {
    for (const auto& [key, value] : object->items()) {
      keys.push_back(key);
    }
  }
  return keys;
}

void add_cdi_devices(const Json& driver_state, PreparedClaim& claim) {
  const Json* devices = member(driver_state, "Devices");
  if (devices == nullptr || !devices->is_array()) {
    return;
  }
  for (const Json& device : *devices) {
    const std::vector<std::string> ids = texts_of(member(device, "CDIDeviceIDs"));
    claim.cdi_devices.insert(claim.cdi_devices.end(), ids.begin(), ids.end());
  }
}

Result<void> add_response(const std::string& encoded, Allocation& allocation) {
  const std::optional<std::string> bytes = decode_base64(encoded);
  google::protobuf::SetLogHandler(nullptr);  // protobuf would log to standard error
  wire::ContainerAllocateResponse response;
  if (!bytes || !response.ParseFromString(*bytes)) {
    return malformed("kubelet_internal_checkpoint",
                     "AllocResp of " + quote(allocation.pod_uid + "/" + allocation.container) + " cannot be decoded");
  }
  allocation.environment.insert(response.envs().begin(), response.envs().end());
  for (const wire::DeviceSpec& device : response.devices()) {
    allocation.devices.push_back({device.container_path(), device.host_path(), device.permissions()});
  }
  allocation.cdi_devices =
      cdi_names_in(std::map<std::string, std::string>(response.annotations().begin(), response.annotations().end()));
  for (const wire::CdiDevice& device : response.cdi_devices()) {
    allocation.cdi_devices.push_back(device.name());
  }
  return {};
}

}  // namespace

std::string container_name_in(const std::map<std::string, std::string>& annotations) {
  std::string name;
  for (const char* key : {"io.kubernetes.cri.container-name", "io.kubernetes.container.name"}) {
    const auto found = annotations.find(key);
    if (found == annotations.end()) {
      continue;
    }
    if (!name.empty() && found->second != name) {
      return {};
    }
    name = found->second;
  }
  return name;
}

std::vector<std::string> cdi_names_in(const std::map<std::string, std::string>& annotations) {
  std::vector<std::string> names;
  for (const auto& [key, value] : annotations) {
    if (!key.starts_with(kCdiPrefix)) {
      continue;
    }
    for (const std::string_view name : split(value, ',')) {
      if (!trim(name).empty()) {
        names.emplace_back(trim(name));
      }
    }
  }
  return names;
}

Result<Checkpoint> parse_checkpoint(std::string_view json) {
  const std::string what = "kubelet_internal_checkpoint";
  const Json document = TRY(parse_object(json, what));
  const Json* data = member(document, "Data");
  if (data == nullptr || !data->is_object()) {
    return malformed(what, "no \"Data\" object");
  }
  Checkpoint checkpoint;
  if (const Json* entries = member(*data, "PodDeviceEntries"); entries != nullptr) {
    if (!entries->is_array()) {
      return malformed(what, "PodDeviceEntries is no list");
    }
    for (const Json& entry : *entries) {
      Allocation allocation;
      allocation.pod_uid = text_of(entry, "PodUID");
      allocation.container = text_of(entry, "ContainerName");
      allocation.resource = text_of(entry, "ResourceName");
      allocation.ids = ids_in(member(entry, "DeviceIDs"));
      const Json* response = member(entry, "AllocResp");
      if (response != nullptr && !response->is_string()) {
        return malformed(what, "AllocResp is no text");
      }
      TRY(add_response(text_of(entry, "AllocResp"), allocation));
      checkpoint.allocations.push_back(std::move(allocation));
    }
  }
  if (const Json* registered = member(*data, "RegisteredDevices"); registered != nullptr && registered->is_object()) {
    for (const auto& [resource, ids] : registered->items()) {
      checkpoint.registered[resource] = texts_of(&ids);
    }
  }
  return checkpoint;
}

Result<std::vector<PreparedClaim>> parse_prepared_claims(std::string_view json) {
  const std::string what = "dra_manager_state";
  const Json document = TRY(parse_object(json, what));
  const Json inner = TRY(parse_object(text_of(document, "Data"), what));
  std::vector<PreparedClaim> claims;
  const Json* list = member(inner, "ClaimInfoStateList");
  if (list == nullptr || !list->is_array()) {
    return claims;
  }
  for (const Json& entry : *list) {
    PreparedClaim claim;
    claim.name = text_of(entry, "Namespace") + "/" + text_of(entry, "ClaimName");
    claim.pod_uids = texts_of(member(entry, "PodUIDs"));
    for (const std::string& uid : keys_of(member(entry, "PodUIDs"))) {
      claim.pod_uids.push_back(uid);  // a set is written as {"uid":{}}
    }
    const Json* drivers = member(entry, "DriverState");
    for (const std::string& driver : keys_of(drivers)) {
      add_cdi_devices((*drivers)[driver], claim);
    }
    claims.push_back(std::move(claim));
  }
  return claims;
}

Result<CpuState> parse_cpu_state(std::string_view json) {
  const Json document = TRY(parse_object(json, "cpu_manager_state"));
  CpuState state;
  state.policy = text_of(document, "policyName");
  const Json* entries = member(document, "entries");
  if (entries == nullptr || !entries->is_object()) {
    return state;
  }
  for (const auto& [pod, containers] : entries->items()) {
    if (!containers.is_object()) {
      continue;  // before 1.18 the entries are keyed by container id
    }
    for (const auto& [name, cpus] : containers.items()) {
      state.exclusive[std::string(pod).append("/").append(name)] =
          cpus.is_string() ? cpus.get<std::string>() : std::string();
    }
  }
  return state;
}

}  // namespace hf::kube
