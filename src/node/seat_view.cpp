#include "node/seat_view.h"

#include <cerrno>

#include "kernel/device_node.h"
#include "kernel/process.h"

namespace hf::node {
namespace {

using container::Answer;
using container::NodeState;
using container::OwedNode;
using container::Seen;
using device::Access;

constexpr Access kReadWrite = Access::read | Access::write;

class Looker {
 public:
  Looker(const kernel::Host& host, const device::Inventory& inventory, const Seating& seating)
      : host_(host),
        inventory_(inventory),
        seating_(seating),
        rights_(kernel::read_rights(host, seating.container.process())) {}

  [[nodiscard]] kernel::Look look() const {
    kernel::Look look{seating_.container, {}, seating_.depth, seating_.limit};
    for (const OwedNode& node : seating_.owed.nodes) {
      look.paths.push_back(node.path);
    }
    for (const device::Unit& unit : inventory_.units) {
      for (const std::string& path : unit.nodes) {
        if (seating_.owed.find(path) == nullptr) {
          look.paths.push_back(path);
        }
      }
    }
    return look;
  }

  [[nodiscard]] NodeState judge(const OwedNode& owed, const Seen& seen) const {
    NodeState state;
    state.owed = owed;
    state.seen = seen;
    state.seen.path = owed.path;
    state.gates = judge_rules(owed);
    const Access letters = owed.access & kReadWrite;
    const bool is_half = letters != Access::none && letters != kReadWrite;
    if (is_half && state.gates.kind == Answer::Kind::allow && state.seen.access == EPERM) {
      state.seen.access.reset();  // the probe asks for both letters, and only one was given
    }
    state.diagnosis = classify(state.seen, background_of(state));
    return state;
  }

  [[nodiscard]] NodeState unseen(const OwedNode& owed, const std::string& why) const {
    NodeState state;
    state.owed = owed;
    state.seen.path = owed.path;
    state.gates = judge_rules(owed);
    state.diagnosis = {container::Trouble::unknown, why};
    return state;
  }

 private:
  [[nodiscard]] Answer judge_rules(const OwedNode& owed) const {
    if (!seating_.observed_problem.empty() || !owed.device) {
      return {Answer::Kind::unknown, owed.device ? seating_.observed_problem : "its driver is not loaded"};
    }
    return container::judge(seating_.observed, request_for(owed));
  }

  [[nodiscard]] container::Background background_of(const NodeState& state) const {
    container::Background background;
    const device::Node* on_host = inventory_.find(state.owed.path);
    background.host_has_node = on_host != nullptr && on_host->live.has_value();
    if (!background.host_has_node && on_host == nullptr && state.owed.device_class.empty()) {
      background.host_has_node = kernel::read_node(host_, state.owed.path).has_value();
    }
    if (state.seen.device) {
      background.driver = driver_with(inventory_.drivers, state.seen.device->kind, state.seen.device->major);
    }
    background.wanted = state.owed.device;
    background.gates = state.gates.kind;
    background.gates_detail = state.gates.detail;
    background.bits_allow = !rights_ || bits_allow(state.seen, rights_->user);
    return background;
  }

  const kernel::Host& host_;
  const device::Inventory& inventory_;
  const Seating& seating_;
  Result<kernel::Rights> rights_;
};

}  // namespace

SeatView look_from_seat(const kernel::Host& host, kernel::Seats& seats, const device::Inventory& inventory,
                        const Seating& seating) {
  const Looker looker(host, inventory, seating);
  const Result<std::vector<Seen>> seen = seats.look(looker.look());
  SeatView view;
  view.problem = seen ? "" : seen.error().message;
  view.has_timed_out = !seen && seen.error().code == std::errc::timed_out;
  const std::vector<OwedNode>& owed = seating.owed.nodes;
  for (std::size_t i = 0; i < owed.size(); ++i) {
    view.nodes.push_back(seen ? looker.judge(owed[i], (*seen)[i]) : looker.unseen(owed[i], view.problem));
  }
  for (std::size_t i = owed.size(); seen && i < seen->size(); ++i) {
    if ((*seen)[i].look == 0 && (*seen)[i].device) {
      view.strangers.push_back((*seen)[i]);
    }
  }
  return view;
}

std::vector<NodeState> unseen_nodes(const container::Entitlement& owed, const std::string& why) {
  std::vector<NodeState> nodes;
  nodes.reserve(owed.nodes.size());
  for (const OwedNode& node : owed.nodes) {
    NodeState& state = nodes.emplace_back();
    state.owed = node;
    state.seen.path = node.path;
    state.gates = {Answer::Kind::unknown, why};
    state.diagnosis = {container::Trouble::unknown, why};
  }
  return nodes;
}

}  // namespace hf::node
