// Seats: looks at nodes from where a container sits: in its cgroups, its mount namespace, as its user.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/cgroup_path.h"
#include "core/container/seat.h"
#include "kernel/cgroup.h"
#include "kernel/host.h"

namespace hf::kernel {

enum class Depth : std::uint8_t { access, open };  // open(2) may wake a sleeping GPU; access(2) asks no driver

struct Look {
  container::Pid pid;               // a process of the container
  const CgroupsOfProcess& cgroups;  // the ones to be judged in
  std::vector<std::string> paths;
  Depth depth = Depth::access;
};

class Seats {
 public:
  virtual ~Seats() = default;

  // One answer per path. Fails where the container has ended, or nothing answers in time: its mounts may hang.
  virtual Result<std::vector<container::Seen>> look(const Look& look) = 0;
};

std::unique_ptr<Seats> open_kernel_seats(const Host& host);

}  // namespace hf::kernel
