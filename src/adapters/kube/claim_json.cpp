#include "adapters/kube/claim_json.h"

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "core/base/text.h"

namespace hf::kube {
namespace {

using document::array_at;
using document::Json;
using document::object_at;
using document::OrderedJson;
using document::require_string;
using document::string_at;
using document::value_at;
using resource::AllocationResult;
using resource::ClaimName;
using resource::PreparedClaim;
using resource::PreparedDevice;
using resource::ResourceClaim;

constexpr document::Limits kLimits{std::size_t(8) << 20U, 64};
constexpr unsigned kFormat = 1;

Result<AllocationResult> result_of(const Json& json, std::size_t index) {
  const document::Where where{"ResourceClaim", "status.allocation.devices.results[" + std::to_string(index) + "]"};
  AllocationResult result;
  result.request = TRY(require_string(json, "request", where));
  result.driver = TRY(require_string(json, "driver", where));
  result.pool = TRY(require_string(json, "pool", where));
  result.device = TRY(require_string(json, "device", where));
  result.share_id = string_at(json, "shareID");
  result.is_admin = document::bool_at(json, "adminAccess").value_or(false);
  return result;
}

OrderedJson json_of(const PreparedDevice& device) {
  OrderedJson json = {
      {"request", device.request}, {"pool", device.pool}, {"device", device.device}, {"cdi", device.cdi_names}};
  if (device.is_admin) {
    json["admin"] = true;
  }
  return json;
}

Result<PreparedDevice> device_of(const Json& json, const document::Where& where) {
  PreparedDevice device;
  device.request = TRY(require_string(json, "request", where));
  device.pool = TRY(require_string(json, "pool", where));
  device.device = TRY(require_string(json, "device", where));
  device.cdi_names = TRY(document::require_strings(json, "cdi", where));
  device.is_admin = document::bool_at(json, "admin").value_or(false);
  return device;
}

Result<PreparedClaim> prepared_of(const Json& json, const document::Where& where) {
  PreparedClaim claim;
  claim.name.name_space = TRY(require_string(json, "namespace", where));
  claim.name.name = TRY(require_string(json, "name", where));
  claim.name.uid = TRY(require_string(json, "uid", where));
  TRY(resource::check_claim_name(claim.name));
  const Json& devices = array_at(json, "devices");
  if (devices.empty()) {
    return fail(std::errc::invalid_argument, where.document + ": " + where.path + " has no devices");
  }
  for (const Json& device : devices) {
    claim.devices.push_back(TRY(device_of(device, where)));
  }
  return claim;
}

}  // namespace

std::string claim_path(const ClaimName& claim) {
  return "/apis/resource.k8s.io/v1/namespaces/" + claim.name_space + "/resourceclaims/" + claim.name;
}

Result<ResourceClaim> parse_claim(std::string_view json) {
  const Json object = TRY(document::parse_object(json, "ResourceClaim", kLimits));
  const document::Where where{"ResourceClaim", "metadata"};
  ResourceClaim claim;
  claim.uid = TRY(require_string(object_at(object, "metadata"), "uid", where));
  const Json& status = object_at(object, "status");
  const Json* const allocation = value_at(status, "allocation");
  claim.is_allocated = allocation != nullptr && allocation->is_object();
  if (!claim.is_allocated) {
    return claim;
  }
  const Json& devices = object_at(*allocation, "devices");
  for (const Json& result : array_at(devices, "results")) {
    claim.results.push_back(TRY(result_of(result, claim.results.size())));
  }
  for (const Json& config : array_at(devices, "config")) {
    if (std::optional<std::string> driver = string_at(object_at(config, "opaque"), "driver")) {
      claim.configured_drivers.push_back(*std::move(driver));
    }
  }
  return claim;
}

std::string render_prepared(const std::vector<PreparedClaim>& claims) {
  OrderedJson list = OrderedJson::array();
  for (const PreparedClaim& claim : claims) {
    OrderedJson devices = OrderedJson::array();
    for (const PreparedDevice& device : claim.devices) {
      devices.push_back(json_of(device));
    }
    list.push_back({{"namespace", claim.name.name_space},
                    {"name", claim.name.name},
                    {"uid", claim.name.uid},
                    {"devices", std::move(devices)}});
  }
  return document::render_json(OrderedJson{{"version", kFormat}, {"claims", std::move(list)}}) + "\n";
}

Result<std::vector<PreparedClaim>> parse_prepared(std::string_view json) {
  const std::string what = "the file of prepared claims";
  const Json file = TRY(document::parse_object(json, what, kLimits));
  if (document::uint_at(file, "version") != kFormat) {
    return fail(std::errc::invalid_argument, "parse " + what + ": its version is not " + std::to_string(kFormat));
  }
  const Json* const list = value_at(file, "claims");
  if (list == nullptr || !list->is_array()) {
    return fail(std::errc::invalid_argument, "parse " + what + ": it has no list of claims");
  }
  std::vector<PreparedClaim> claims;
  for (const Json& entry : *list) {
    const document::Where where{what, "claims[" + std::to_string(claims.size()) + "]"};
    claims.push_back(TRY(prepared_of(entry, where)));
  }
  return claims;
}

}  // namespace hf::kube
