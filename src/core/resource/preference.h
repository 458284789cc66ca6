// Preference: which of the devices that are free a container had better get: few NUMA nodes, close to each other.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/device/inventory.h"
#include "core/resource/offer.h"
#include "core/resource/policy.h"

namespace hf::resource {

struct Choice {
  std::vector<std::string> available;
  std::vector<std::string> must_include;
  std::size_t count = 0;
};

// The same question has the same answer, whatever the order of `available`. Fails where the question has none: unknown
// devices, or fewer available than wanted.
Result<std::vector<std::string>> prefer(const Offer& offer, const Choice& choice, const device::Inventory& inventory,
                                        Spread spread);

// How close two units are: NVLinks count most, then the part of the way through the PCI tree that they share.
int closeness(const device::Unit& a, const device::Unit& b);

}  // namespace hf::resource
