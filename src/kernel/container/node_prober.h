// NodeProber: probes device nodes from inside a container: in its cgroups and mount namespace, as its user.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/cgroup/cgroup_path.h"
#include "core/container/entitlement/node_state.h"
#include "kernel/container/container_handle.h"
#include "kernel/files/host.h"

namespace hf::kernel {

inline constexpr std::chrono::milliseconds kProbeTimeout{2000};  // its /dev may be on a file system that hangs

enum class Depth : std::uint8_t { access, open };  // open(2) may wake a sleeping GPU; access(2) asks no driver

struct ProbeRequest {
  const ContainerHandle& container;
  std::vector<std::string> paths;
  Depth depth = Depth::access;
  std::chrono::milliseconds limit = kProbeTimeout;
};

class NodeProber {
 public:
  virtual ~NodeProber() = default;

  // Returns one view per path. Fails where the container has ended, is frozen, or does not answer in time (timed_out).
  virtual Result<std::vector<container::NodeView>> probe(const ProbeRequest& request) = 0;

  // Only looks the paths up: nothing is known about `access` and `open` then. No process enters the container, which
  // takes several milliseconds, and works in a frozen one, too.
  virtual Result<std::vector<container::NodeView>> look_up(const ProbeRequest& request) = 0;
};

std::unique_ptr<NodeProber> open_node_prober(const Host& host);

}  // namespace hf::kernel
