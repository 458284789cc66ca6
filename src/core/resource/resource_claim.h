// ResourceClaim: devices that the cluster allocated to pods of this host, and what kubelet gives their containers for
// it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/resource/cluster_device.h"
#include "core/resource/slice.h"

namespace hf::resource {

// How kubelet names a claim.
struct ClaimName {
  std::string name_space;
  std::string name;
  std::string uid;

  friend bool operator==(const ClaimName&, const ClaimName&) = default;
};
std::string to_string(const ClaimName& claim);  // "training/gpu"

// Names come from outside and become part of a URL: an error says which one is none that Kubernetes gives.
Result<void> check_claim_name(const ClaimName& claim);

struct AllocationResult {
  std::string request;
  std::string driver;
  std::string pool;
  std::string device;
  std::optional<std::string> share_id;  // of a device that several claims may have at once
  bool is_admin = false;                // adminAccess: the device may be in use by others
};

// As the API server has it.
struct ResourceClaim {
  std::string uid;
  bool is_allocated = false;
  std::vector<AllocationResult> results;
  std::vector<std::string> configured_drivers;  // those that the claim or its class has parameters for
};

struct PreparedDevice {
  std::string request;
  std::string pool;
  std::string device;
  std::vector<std::string> cdi_names;
  bool is_admin = false;

  friend bool operator==(const PreparedDevice&, const PreparedDevice&) = default;
};

struct PreparedClaim {
  ClaimName name;
  std::vector<PreparedDevice> devices;

  friend bool operator==(const PreparedClaim&, const PreparedClaim&) = default;
};

// Whole devices, or an error that says what is missing. Results of other drivers are theirs to prepare. The error's
// reason is not_yet where it will work in a moment.
Result<PreparedClaim> prepare(const ClaimName& name, const ResourceClaim& claim, const Pool& pool,
                              const std::vector<ClusterDevice>& devices);

// What was prepared before, if all of it can still be used.
Result<void> check_prepared(const PreparedClaim& claim, const std::vector<ClusterDevice>& devices);

// Refuses a device that another claim has, unless one of both has it for administration. `prepared`: by UID.
Result<void> check_free(const PreparedClaim& claim, const std::map<std::string, PreparedClaim>& prepared);

}  // namespace hf::resource
