// Features: the labels by which a cluster node says which GPUs it has. They are those of NVIDIA's GPU feature
// discovery, so that pods that select nodes by them need no change.
#pragma once

#include <map>
#include <string>

#include "core/device/inventory.h"
#include "core/resource/policy.h"

namespace hf::resource {

using Labels = std::map<std::string, std::string>;

// Empty where the host has no NVIDIA GPU. What is not known (NVML did not answer) has no label.
Labels labels_of(const device::Inventory& inventory, const Policy& policy);

// The file that node-feature-discovery reads from its directory features.d: "name=value" lines.
std::string render_features(const Labels& labels);

}  // namespace hf::resource
