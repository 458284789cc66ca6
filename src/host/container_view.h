// ContainerView: the device nodes a container is owed, probed from inside it, and why some cannot be opened.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/base/shared.h"
#include "core/container/entitlement/entitlement.h"
#include "core/container/entitlement/node_state.h"
#include "core/container/gate/gate.h"
#include "core/device/inventory.h"
#include "host/census.h"
#include "kernel/container/node_prober.h"

namespace hf::host {

struct ViewRequest {
  const kernel::ContainerHandle& container;
  const Shared<container::Entitlement>& owed;
  const container::Observed& observed;
  const std::string& observed_problem;  // why nothing was observed
  kernel::Depth depth = kernel::Depth::access;
  std::chrono::milliseconds limit = kernel::kProbeTimeout;
};

struct ContainerView {
  std::vector<container::NodeState> nodes;    // one for each owed node
  std::vector<container::NodeView> not_owed;  // units of this host that it sees and is not owed
  bool has_timed_out = false;
};
ContainerView view_container(const kernel::Host& host, kernel::NodeProber& prober, const device::Inventory& inventory,
                             const ViewRequest& request);

// The owed nodes of a container that could not be probed, or was not yet; `why` says so.
std::vector<container::NodeState> unseen_nodes(const Shared<container::Entitlement>& owed, const std::string& why);

}  // namespace hf::host
