// Requirement: the driver and CUDA versions that an image requires through NVIDIA_REQUIRE_*.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hf::nvidia {

// What is known about this host: "cuda" → "12.4", "driver" → "550.54.15". A condition on an unknown fact counts as met.
using HostDeviceFacts = std::map<std::string, std::string>;

// "cuda>=12.4 brand=tesla,driver>=470": blanks are "or", commas are "and". False only where every alternative fails.
bool is_met(std::string_view requirement, const HostDeviceFacts& facts);

// The first variable that is not met, as "NVIDIA_REQUIRE_CUDA=cuda>=13.0"; absent where all are met, or where
// NVIDIA_DISABLE_REQUIRE is set.
std::optional<std::string> find_unmet(const std::map<std::string, std::string>& environment,
                                      const HostDeviceFacts& facts);

// A line for people for each variable with a condition that cannot be read.
std::vector<std::string> find_unreadable(const std::map<std::string, std::string>& environment);

// The newest CUDA that a driver of this version can run; "" for an unknown driver version.
std::string cuda_of_driver(std::string_view version);

}  // namespace hf::nvidia
