// Allocation: what a container is given with the devices that kubelet chose for it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/resource/offer.h"
#include "core/resource/policy.h"

namespace hf::resource {

struct AllocatedMount {
  std::string container_path;
  std::string host_path;
  bool is_read_only = true;

  friend bool operator==(const AllocatedMount&, const AllocatedMount&) = default;
};

struct Allocation {
  std::map<std::string, std::string> environment;
  std::vector<AllocatedMount> mounts;
  std::vector<std::string> nodes;  // at the same path on the host and in the container, for reading and writing
  std::map<std::string, std::string> annotations;
  std::vector<std::string> cdi_devices;

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

// All or nothing: fails where one device is unknown, named twice, or not healthy.
Result<Allocation> allocate(const Offer& offer, const std::vector<std::string>& ids, const Policy& policy);

// "nvidia.com/gpu": the kind of the CDI spec that the names of an allocation refer to.
std::string cdi_kind(const Policy& policy, const std::string& device_class);

}  // namespace hf::resource
