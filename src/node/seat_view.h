// SeatView: the nodes a container is owed, as they look from its seat, and what stands in the way.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/container/entitlement.h"
#include "core/container/gate.h"
#include "core/container/seat.h"
#include "core/device/inventory.h"
#include "kernel/seat.h"
#include "node/census.h"

namespace hf::node {

struct Seating {
  const kernel::ContainerHandle& container;
  const container::Entitlement& owed;
  const container::Observed& observed;
  const std::string& observed_problem;  // why nothing was observed
  kernel::Depth depth = kernel::Depth::access;
  std::chrono::milliseconds limit = kernel::kLongestLook;
};

struct SeatView {
  std::vector<container::NodeState> nodes;  // one for each that is owed
  std::vector<container::Seen> strangers;   // units of this node it is not owed
  std::string problem;
  bool has_timed_out = false;
};
SeatView look_from_seat(const kernel::Host& host, kernel::Seats& seats, const device::Inventory& inventory,
                        const Seating& seating);

// Where nobody could look: what is owed, and why nothing more is known of it.
std::vector<container::NodeState> unseen_nodes(const container::Entitlement& owed, const std::string& why);

}  // namespace hf::node
