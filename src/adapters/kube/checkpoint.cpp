#include "adapters/kube/checkpoint.h"

#include <algorithm>
#include <array>

#include <google/protobuf/stubs/logging.h>
#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "adapters/kube/device_plugin.pb.h"
#include "core/base/base64.h"
#include "core/base/text.h"

namespace hf::kube {
namespace {

using document::array_at;
using document::Json;
using document::object_at;
using document::parse_object;
using document::string_at;
using document::strings_at;
using document::value_at;

constexpr std::string_view kCdiPrefix = "cdi.k8s.io/";

std::unexpected<Error> malformed(const std::string& what, const std::string& why) {
  return fail(std::errc::invalid_argument, "parse " + what + ": " + why);
}

// DeviceIDs: by NUMA node ({"0":["id"]}), in older files a plain list.
std::vector<std::string> device_ids_in(const Json& entry) {
  std::vector<std::string> ids = strings_at(entry, "DeviceIDs");
  const Json& by_node = object_at(entry, "DeviceIDs");
  for (const auto& [numa, list] : by_node.items()) {
    std::ranges::move(strings_at(by_node, numa), std::back_inserter(ids));
  }
  return ids;
}

Result<void> add_response(const std::string& encoded, Allocation& allocation) {
  const std::optional<std::string> bytes = decode_base64(encoded);
  google::protobuf::SetLogHandler(nullptr);  // protobuf would log to standard error
  v1beta1::ContainerAllocateResponse response;
  if (!bytes || !response.ParseFromString(*bytes)) {
    return malformed("kubelet_internal_checkpoint",
                     "AllocResp of " + quote(allocation.pod_uid + "/" + allocation.container) + " cannot be decoded");
  }
  allocation.environment.insert(response.envs().begin(), response.envs().end());
  for (const v1beta1::DeviceSpec& device : response.devices()) {
    allocation.devices.push_back({device.container_path(), device.host_path(), device.permissions()});
  }
  allocation.cdi_devices =
      cdi_names_in(std::map<std::string, std::string>(response.annotations().begin(), response.annotations().end()));
  for (const v1beta1::CDIDevice& device : response.cdi_devices()) {
    allocation.cdi_devices.push_back(device.name());
  }
  return {};
}

Result<Allocation> allocation_of(const Json& entry) {
  Allocation allocation;
  allocation.pod_uid = string_at(entry, "PodUID").value_or("");
  allocation.container = string_at(entry, "ContainerName").value_or("");
  allocation.resource = string_at(entry, "ResourceName").value_or("");
  allocation.ids = device_ids_in(entry);
  const Json* response = value_at(entry, "AllocResp");
  if (response != nullptr && !response->is_string()) {
    return malformed("kubelet_internal_checkpoint", "AllocResp is no text");
  }
  TRY(add_response(string_at(entry, "AllocResp").value_or(""), allocation));
  return allocation;
}

PreparedClaim claim_of(const Json& entry) {
  PreparedClaim claim;
  claim.name = string_at(entry, "Namespace").value_or("") + "/" + string_at(entry, "ClaimName").value_or("");
  claim.pod_uids = strings_at(entry, "PodUIDs");
  for (const auto& [uid, nothing] : object_at(entry, "PodUIDs").items()) {
    claim.pod_uids.push_back(uid);  // a set is written as {"uid":{}}
  }
  for (const Json& driver : object_at(entry, "DriverState")) {
    for (const Json& device : array_at(driver, "Devices")) {
      std::ranges::move(strings_at(device, "CDIDeviceIDs"), std::back_inserter(claim.cdi_devices));
    }
  }
  return claim;
}

}  // namespace

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
  const Json file = TRY(parse_object(json, what));
  const Json* data = value_at(file, "Data");
  if (data == nullptr || !data->is_object()) {
    return malformed(what, "no \"Data\" object");
  }
  Checkpoint checkpoint;
  if (const Json* entries = value_at(*data, "PodDeviceEntries"); entries != nullptr && !entries->is_array()) {
    return malformed(what, "PodDeviceEntries is no list");
  }
  for (const Json& entry : array_at(*data, "PodDeviceEntries")) {
    checkpoint.allocations.push_back(TRY(allocation_of(entry)));
  }
  const Json& registered = object_at(*data, "RegisteredDevices");
  for (const auto& [resource, ids] : registered.items()) {
    checkpoint.registered[resource] = strings_at(registered, resource);
  }
  return checkpoint;
}

Result<std::vector<PreparedClaim>> parse_prepared_claims(std::string_view json) {
  const std::string what = "dra_manager_state";
  const Json file = TRY(parse_object(json, what));
  const Json data = TRY(parse_object(string_at(file, "Data").value_or(""), what));
  std::vector<PreparedClaim> claims;
  for (const Json& entry : array_at(data, "ClaimInfoStateList")) {
    claims.push_back(claim_of(entry));
  }
  return claims;
}

Result<CpuState> parse_cpu_state(std::string_view json) {
  const Json file = TRY(parse_object(json, "cpu_manager_state"));
  CpuState state;
  state.policy = string_at(file, "policyName").value_or("");
  const Json& entries = object_at(file, "entries");
  for (const auto& [pod, containers] : entries.items()) {  // before 1.18 they are keyed by container id
    for (const auto& [name, cpus] : document::string_map_at(entries, pod)) {
      state.exclusive[std::string(pod).append("/").append(name)] = cpus;
    }
  }
  return state;
}

}  // namespace hf::kube
