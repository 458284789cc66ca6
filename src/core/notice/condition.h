// Condition: DeviceAccess of the cluster node: whether every container on it can use the devices that it is owed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/notice/host_state.h"

namespace hf::notice {

inline constexpr const char* kConditionType = "DeviceAccess";
inline constexpr const char* kTaintKey = "holdfast.dev/device-access";

// unknown: the guard does not answer, or watches nothing.
enum class Status : std::uint8_t { yes, no, unknown };
std::string to_string(Status status);  // "True", "False", "Unknown"

struct Condition {
  Status status = Status::unknown;
  std::string reason;
  std::string message;

  friend bool operator==(const Condition&, const Condition&) = default;
};

Condition condition_without_guard(const std::string& why);
// `why_blind`: "" where the guard watches. `lacking`: the containers that lack something which was not repaired.
Condition condition_of(const std::string& why_blind, const std::vector<ContainerState>& lacking);

}  // namespace hf::notice
