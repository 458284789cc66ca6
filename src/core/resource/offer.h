// Offer: the devices of one resource as kubelet is told of them. A device is healthy only while its whole set of device
// nodes exists with the driver's current numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/device_class.h"
#include "core/device/inventory.h"
#include "core/resource/policy.h"

namespace hf::resource {

struct OfferedDevice {
  std::string id;                  // as kubelet knows it: "GPU-1b2c…", "GPU-1b2c…::3" for a replica
  std::string device;              // without the number of the replica
  std::string unit;                // the physical device: its UUID, or its name where it has none
  std::vector<std::string> nodes;  // the whole set
  std::optional<int> numa;
  std::optional<std::string> problem;  // absent: it is healthy

  [[nodiscard]] bool is_healthy() const { return !problem; }
  friend bool operator==(const OfferedDevice&, const OfferedDevice&) = default;
};

struct Offer {
  std::string resource;
  std::string device_class;
  unsigned replicas = 1;  // of each device
  std::vector<OfferedDevice> devices;

  [[nodiscard]] const OfferedDevice* find(std::string_view id) const;
  friend bool operator==(const Offer&, const Offer&) = default;
};

// What became of an offer since its plugin started. That of the DRA driver has the driver's name as its resource.
struct OfferStatus {
  Offer offer;
  bool is_connected = false;  // kubelet reads its list; the driver: kubelet has registered it
  std::uint64_t allocated = 0;
  std::uint64_t refused = 0;

  [[nodiscard]] std::size_t healthy() const;
  friend bool operator==(const OfferStatus&, const OfferStatus&) = default;
};

// Reasons why a device must not be used, beside those of the inventory, by OfferedDevice::unit or ::id.
using DeviceProblems = std::map<std::string, std::string, std::less<>>;

// One offer per resource, sorted by name. The inventory must have asked the vendor's library where MIG devices are
// to be offered.
std::vector<Offer> offers_of(const device::Inventory& inventory, const device::DeviceClasses& classes,
                             const Policy& policy, const DeviceProblems& problems);

// The key of a unit in DeviceProblems.
std::string key_of(const device::Unit& unit);

// The offered ids of a unit that are in `given`; where there are none, the unit as a whole. Keys of DeviceProblems.
std::set<std::string> problem_keys(const device::Unit& unit, const std::vector<Offer>& offers,
                                   const std::vector<Offer>& cluster_offers, const std::set<std::string>& given);

}  // namespace hf::resource
