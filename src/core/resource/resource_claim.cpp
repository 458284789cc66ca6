#include "core/resource/resource_claim.h"

#include <algorithm>

#include "core/base/text.h"

namespace hf::resource {
namespace {

std::unexpected<Error> refuse(std::errc code, const ClaimName& claim, const std::string& why) {
  return fail(code, "claim " + to_string(claim) + ": " + why);
}

// Names of Kubernetes' objects, and the form of its UIDs.
bool is_plain_name(const std::string& name) {
  constexpr std::size_t kLongest = 253;
  constexpr std::string_view kCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  return !name.empty() && name.size() <= kLongest && name.find_first_not_of(kCharacters) == std::string::npos &&
         name.front() != '.' && name.front() != '-' && name.find("..") == std::string::npos;
}

// An administrator may have a device that is in use, but no broken one.
Result<const ClusterDevice*> find_usable(const ClaimName& claim, const std::string& name, bool is_admin,
                                         const std::vector<ClusterDevice>& devices) {
  const auto found =
      std::ranges::find_if(devices, [&name](const ClusterDevice& one) { return one.published.name == name; });
  if (found == devices.end()) {
    return refuse(std::errc::no_such_device, claim, "there is no device " + quote(name) + " on this host");
  }
  if (found->waits_for) {  // first: it may be the problem
    return fail(Reason::not_yet,
                "claim " + to_string(claim) + ": device " + quote(name) + " cannot be used yet: " + *found->waits_for);
  }
  if (found->problem && !(is_admin && found->is_taken)) {
    return refuse(std::errc::no_such_device, claim, "device " + quote(name) + " cannot be used: " + *found->problem);
  }
  return &*found;
}

Result<void> check_result(const ClaimName& claim, const AllocationResult& result, const Pool& pool) {
  if (result.pool != pool.node) {
    return refuse(std::errc::invalid_argument, claim,
                  "device " + quote(result.device) + " is in the pool " + quote(result.pool) + ", this host's is " +
                      quote(pool.node));
  }
  if (result.share_id) {  // no slice offers that: another claim would have the device at the same time
    return refuse(std::errc::invalid_argument, claim,
                  "device " + quote(result.device) + " has a shareID, and this driver shares no device");
  }
  return {};
}

}  // namespace

std::string to_string(const ClaimName& claim) { return claim.name_space + "/" + claim.name; }

Result<void> check_claim_name(const ClaimName& claim) {
  for (const std::string* name : {&claim.name_space, &claim.name, &claim.uid}) {
    if (!is_plain_name(*name)) {
      return fail(std::errc::invalid_argument, "claim " + quote(to_string(claim)) + ": " + quote(*name) +
                                                   " is no name or UID that Kubernetes gives");
    }
  }
  return {};
}

Result<PreparedClaim> prepare(const ClaimName& name, const ResourceClaim& claim, const Pool& pool,
                              const std::vector<ClusterDevice>& devices) {
  if (claim.uid != name.uid) {
    return refuse(std::errc::invalid_argument, name,
                  "kubelet means the one with UID " + name.uid + ", the API server has one with UID " + claim.uid);
  }
  if (!claim.is_allocated) {
    return refuse(std::errc::invalid_argument, name, "nothing is allocated to it");
  }
  if (std::ranges::find(claim.configured_drivers, pool.driver) != claim.configured_drivers.end()) {
    return refuse(std::errc::invalid_argument, name, "it has parameters for " + pool.driver + ", which knows none");
  }
  PreparedClaim prepared{name, {}};
  for (const AllocationResult& result : claim.results) {
    if (result.driver != pool.driver) {
      continue;
    }
    TRY(check_result(name, result, pool));
    const ClusterDevice* const device = TRY(find_usable(name, result.device, result.is_admin, devices));
    // The alternative of a request is no name that kubelet asks for: "gpu/large" is for containers that want "gpu".
    prepared.devices.push_back({result.request.substr(0, result.request.find('/')),
                                result.pool,
                                result.device,
                                {device->cdi_name},
                                result.is_admin});
  }
  if (prepared.devices.empty()) {
    return refuse(std::errc::invalid_argument, name, "it has no device of the driver " + pool.driver);
  }
  return prepared;
}

Result<void> check_prepared(const PreparedClaim& claim, const std::vector<ClusterDevice>& devices) {
  for (const PreparedDevice& device : claim.devices) {
    const ClusterDevice* const usable = TRY(find_usable(claim.name, device.device, device.is_admin, devices));
    if (device.cdi_names != std::vector{usable->cdi_name}) {
      return refuse(std::errc::invalid_argument, claim.name,
                    "device " + quote(device.device) + " has another CDI name now: " + usable->cdi_name);
    }
  }
  return {};
}

Result<void> check_free(const PreparedClaim& claim, const std::map<std::string, PreparedClaim>& prepared) {
  for (const PreparedDevice& device : claim.devices) {
    const auto has_it = [&device](const PreparedDevice& other) {
      return !device.is_admin && !other.is_admin && other.device == device.device;
    };
    for (const auto& [uid, other] : prepared) {
      if (uid != claim.name.uid && std::ranges::any_of(other.devices, has_it)) {
        return refuse(std::errc::device_or_resource_busy, claim.name,
                      "device " + quote(device.device) + " is in use: the claim " + to_string(other.name) + " has it");
      }
    }
  }
  return {};
}

}  // namespace hf::resource
