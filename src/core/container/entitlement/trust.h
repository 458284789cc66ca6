// Trust: pods whose own requests for devices count without an allocation by kubelet, as the administrator's config
// says. Monitoring pods get all GPUs that way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/container/container.h"

namespace hf::container {

// Globs as in fnmatch(3). The namespace is required: a user who may create pods chooses their names.
struct TrustRule {
  std::string name_space;
  std::optional<std::string> pod;
  std::optional<std::string> container;

  friend bool operator==(const TrustRule&, const TrustRule&) = default;
};
std::string to_string(const TrustRule& rule);  // "trust: {namespace: gpu-operator, pod: dcgm-*}"

// The first that matches; null where none does. Only names that the CRI wrote count.
const TrustRule* find_trust(const std::vector<TrustRule>& rules, const std::optional<Pod>& pod);

}  // namespace hf::container
