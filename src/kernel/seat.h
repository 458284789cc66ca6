// Seats: looks at nodes from where a container sits: in its cgroups, its mount namespace, as its user.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/cgroup_path.h"
#include "core/container/seat.h"
#include "kernel/container_handle.h"
#include "kernel/host.h"

namespace hf::kernel {

inline constexpr std::chrono::milliseconds kLongestLook{2000};  // its /dev may lie on a file system that hangs

enum class Depth : std::uint8_t { access, open };  // open(2) may wake a sleeping GPU; access(2) asks no driver

struct Look {
  const ContainerHandle& container;
  std::vector<std::string> paths;
  Depth depth = Depth::access;
  std::chrono::milliseconds limit = kLongestLook;
};

class Seats {
 public:
  virtual ~Seats() = default;

  // One answer per path. Fails where the container has ended, is frozen, or nothing answers in time (timed_out).
  virtual Result<std::vector<container::Seen>> look(const Look& look) = 0;
};

std::unique_ptr<Seats> open_kernel_seats(const Host& host);

}  // namespace hf::kernel
