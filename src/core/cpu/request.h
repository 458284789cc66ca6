// CpuRequest: the exclusive CPUs that a container asks for, by its pod's resources or by labels.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/cpu/options.h"

namespace hf::cpu {

// How the cgroup of a container divides CPU time: shares and quota as the runtime's configuration has them.
struct CpuTime {
  std::optional<std::uint64_t> shares;
  std::optional<std::int64_t> quota;    // microseconds in each period; negative: no limit
  std::optional<std::uint64_t> period;  // microseconds

  friend bool operator==(const CpuTime&, const CpuTime&) = default;
};

struct CpuRequest {
  std::uint32_t count = 0;
  std::optional<Options> options;      // absent: the manager's own
  bool is_near_devices = true;         // where it has devices
  std::vector<std::string> near = {};  // the devices: "/dev/nvidia0", "gpu"; empty: all that it owns

  friend bool operator==(const CpuRequest&, const CpuRequest&) = default;
};

// The whole CPUs of a container in a Guaranteed pod, whose request and limit are the same. Absent: a fraction, or none.
std::optional<CpuRequest> request_of_pod(const CpuTime& time);

// holdfast.cpus=4, holdfast.cpus.near=gpu, holdfast.cpus.options=full-pcpus-only,…
Result<std::optional<CpuRequest>> request_in(const std::map<std::string, std::string>& labels);

}  // namespace hf::cpu
