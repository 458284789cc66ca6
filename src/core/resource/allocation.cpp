#include "core/resource/allocation.h"

#include <algorithm>
#include <set>

#include "core/base/add_missing.h"
#include "core/base/text.h"

namespace hf::resource {
namespace {

constexpr const char* kVisible = "NVIDIA_VISIBLE_DEVICES";
constexpr const char* kMountRoot = "/var/run/nvidia-container-devices";

std::unexpected<Error> refuse(std::errc code, const Offer& offer, const std::string& why) {
  return fail(code, "allocate " + offer.resource + ": " + why);
}

Result<std::vector<const OfferedDevice*>> find_devices(const Offer& offer, const std::vector<std::string>& ids,
                                                       const Policy& policy) {
  std::vector<const OfferedDevice*> found;
  for (const std::string& id : ids) {
    const OfferedDevice* const device = offer.find(id);
    if (device == nullptr) {
      return refuse(std::errc::invalid_argument, offer, "there is no device " + quote(id));
    }
    if (std::ranges::find(found, device) != found.end()) {
      return refuse(std::errc::invalid_argument, offer, "device " + quote(id) + " is named twice");
    }
    if (device->problem) {
      return refuse(std::errc::no_such_device, offer, "device " + quote(id) + " cannot be used: " + *device->problem);
    }
    found.push_back(device);
  }
  if (found.empty()) {
    return refuse(std::errc::invalid_argument, offer, "no device is named");
  }
  if (policy.allows_one_replica && offer.replicas > 1 && found.size() > 1) {
    return refuse(std::errc::invalid_argument, offer,
                  std::to_string(found.size()) + " replicas are requested, and the config allows one: more of them " +
                      "would not be more of a GPU (failRequestsGreaterThanOne)");
  }
  return found;
}

template <class Key>
std::vector<std::string> unique_in_order(const std::vector<const OfferedDevice*>& devices, Key key) {
  std::vector<std::string> all;
  for (const OfferedDevice* device : devices) {
    add_missing(all, key(*device));
  }
  return all;
}

void add_cdi(Allocation& allocation, const Offer& offer, const std::vector<std::string>& devices,
             const Policy& policy) {
  std::vector<std::string> names;
  names.reserve(devices.size());
  for (const std::string& device : devices) {
    names.push_back(cdi_kind(policy, offer.device_class) + "=" + device);
  }
  if (policy.strategies.contains(DeviceListStrategy::cdi_annotations)) {
    std::string key = "holdfast_" + offer.resource;
    std::ranges::replace(key, '/', '_');
    allocation.annotations[policy.annotation_prefix + key] = join(names, ",");
  }
  if (policy.strategies.contains(DeviceListStrategy::cdi_cri)) {
    allocation.cdi_devices = std::move(names);
  }
}

// The variable is set in any case: an image may have it as "all", which some runtimes take for a request.
void add_nvidia(Allocation& allocation, const std::vector<std::string>& devices, const Policy& policy) {
  std::string& visible = allocation.environment[kVisible];
  visible = policy.strategies.contains(DeviceListStrategy::envvar) ? join(devices, ",") : "void";
  if (policy.strategies.contains(DeviceListStrategy::volume_mounts)) {
    visible = kMountRoot;
    for (const std::string& device : devices) {
      allocation.mounts.push_back({std::string(kMountRoot) + "/" + device, "/dev/null", true});
    }
  }
}

}  // namespace

Result<Allocation> allocate(const Offer& offer, const std::vector<std::string>& ids, const Policy& policy) {
  const std::vector<const OfferedDevice*> found = TRY(find_devices(offer, ids, policy));
  const std::vector<std::string> devices =
      unique_in_order(found, [](const OfferedDevice& device) { return std::vector{device.device}; });
  Allocation allocation;
  add_cdi(allocation, offer, devices, policy);
  if (offer.device_class == "nvidia") {
    add_nvidia(allocation, devices, policy);
  }
  if (policy.passes_nodes || offer.device_class != "nvidia") {
    allocation.nodes = unique_in_order(found, [](const OfferedDevice& device) { return device.nodes; });
  }
  return allocation;
}

std::string cdi_kind(const Policy& policy, const std::string& device_class) {
  const bool is_nvidia = device_class == "nvidia";
  const std::string vendor = !policy.cdi_vendor.empty() ? policy.cdi_vendor : is_nvidia ? "nvidia.com" : "holdfast.dev";
  return vendor + "/" + (is_nvidia ? "gpu" : device_class);
}

}  // namespace hf::resource
