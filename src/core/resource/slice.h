// Slice: the devices of one host as the API server keeps them: a pool of ResourceSlices, and the steps that make the
// pool what it should be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/resource/cluster_device.h"

namespace hf::resource {

inline constexpr std::size_t kDevicesPerSlice = 128;  // Kubernetes' limit

// The name of a DRA driver, as Kubernetes accepts it: a DNS name of at most 63 characters.
Result<void> check_driver_name(const std::string& name);

struct Pool {
  std::string driver;    // "gpu.holdfast.dev"
  std::string node;      // the cluster node; the pool has its name
  std::string node_uid;  // "": not known; the slices then outlive a node that is removed from the cluster
};

struct Slice {
  std::string name;
  std::uint64_t generation = 0;
  std::size_t count = 0;  // of the slices of this generation
  std::vector<PublishedDevice> devices;

  friend bool operator==(const Slice&, const Slice&) = default;
};

// One that the API server has, of our driver and node.
struct FoundSlice {
  Slice slice;
  std::string pool;
  std::string owner_uid;
  std::string resource_version;
  bool is_readable = true;  // false: it has something that we would not write
};

enum class SliceAction : std::uint8_t { create, replace, remove };

struct SliceStep {
  SliceAction action = SliceAction::create;
  Slice slice;
  std::string resource_version;  // of the one that is replaced

  friend bool operator==(const SliceStep&, const SliceStep&) = default;
};

// Nothing to do: no step. Otherwise the whole pool gets a new generation: a scheduler ignores older ones, and waits
// until all slices of the newest are there. Where there is no device, there is no slice.
std::vector<SliceStep> plan_slices(const Pool& pool, const std::vector<PublishedDevice>& devices,
                                   const std::vector<FoundSlice>& found);

}  // namespace hf::resource
