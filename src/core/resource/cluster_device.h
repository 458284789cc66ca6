// ClusterDevice: a device as the cluster knows it: a name, attributes and capacities (resource.k8s.io/v1).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/device/inventory.h"
#include "core/resource/offer.h"
#include "core/resource/policy.h"

namespace hf::resource {

// A version as semver.org means it: "550.54.15".
struct SemanticVersion {
  std::string text;

  friend auto operator<=>(const SemanticVersion&, const SemanticVersion&) = default;
};
// Of "470.82.01" it makes "470.82.1", because no number may begin with 0, and of "12.4" it makes "12.4.0". Absent where
// the text has no numbers.
std::optional<SemanticVersion> semantic_version(std::string_view text);

using Attribute = std::variant<std::string, std::int64_t, bool, SemanticVersion>;

struct PublishedDevice {
  std::string name;  // "gpu-1b2c…": lower case letters, digits and '-'
  std::map<std::string, Attribute> attributes;
  std::map<std::string, std::uint64_t> capacity;  // in bytes

  friend bool operator==(const PublishedDevice&, const PublishedDevice&) = default;
};

struct ClusterDevice {
  PublishedDevice published;
  std::vector<std::string> nodes;        // the whole set
  std::string cdi_name;                  // "nvidia.com/gpu=GPU-1b2c…"
  std::optional<std::string> problem;    // absent: it is healthy
  std::optional<std::string> waits_for;  // why it is not known at this moment whether its CDI name can be used
  bool is_taken = false;                 // its only problem is that a pod has it by the device plugin

  friend bool operator==(const ClusterDevice&, const ClusterDevice&) = default;
};

// What the cluster is told of has no replicas, is named by UUIDs, and has MIG devices beside whole GPUs: its attributes
// tell them apart.
Policy cluster_policy(const Policy& policy);

// The devices of offers that were made with that policy.
std::vector<ClusterDevice> cluster_devices(const device::Inventory& inventory, const std::vector<Offer>& offers,
                                           const Policy& policy);

// What is published: healthy devices. A device that is not whole is left out, so that no scheduler chooses it. A pod
// that has it already is told by kubelet's health stream.
std::vector<PublishedDevice> published_of(const std::vector<ClusterDevice>& devices);

// For the status: what a pod has by the device plugin is no worse for it.
Offer offer_of(const std::string& driver, const std::vector<ClusterDevice>& devices);

// The device plugin and DRA offer the same devices. What one of them gave away, and to whom: by the device's whole set
// of nodes, because they name devices differently.
using Taken = std::map<std::vector<std::string>, std::string>;
void hold_taken(std::vector<Offer>& offers, const Taken& taken);
void hold_taken(std::vector<ClusterDevice>& devices, const Taken& taken);

}  // namespace hf::resource
