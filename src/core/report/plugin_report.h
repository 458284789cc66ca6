// PluginReport: what holdfast-kube would offer to kubelet, and what a container would get with each device.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/resource/allocation.h"
#include "core/resource/offer.h"

namespace hf::report {

struct PluginReport {
  struct Resource {
    resource::Offer offer;
    std::vector<Result<resource::Allocation>> allocations;  // of each device by itself
  };
  std::vector<Resource> resources;
  std::vector<std::string> notes;

  [[nodiscard]] bool is_fine() const {
    return std::ranges::all_of(resources, [](const Resource& one) {
      return std::ranges::all_of(one.allocations, [](const auto& allocation) { return allocation.has_value(); });
    });
  }
};

}  // namespace hf::report
