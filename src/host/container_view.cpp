#include "host/container_view.h"

#include <cerrno>

#include "kernel/files/device_node.h"
#include "kernel/process/process.h"

namespace hf::host {
namespace {

using container::Answer;
using container::NodeState;
using container::NodeView;
using container::OwedNode;
using device::Access;

constexpr Access kReadWrite = Access::read | Access::write;

class ContainerViewer {
 public:
  ContainerViewer(const kernel::Host& host, const device::Inventory& inventory, const ViewRequest& request)
      : host_(host),
        inventory_(inventory),
        request_(request),
        rights_(kernel::read_rights(host, request.container.process())) {}

  [[nodiscard]] kernel::ProbeRequest probe_request() const {
    kernel::ProbeRequest probe{request_.container, {}, request_.depth, request_.limit};
    for (const OwedNode& node : request_.owed->nodes) {
      probe.paths.push_back(node.path);
    }
    for (const device::Unit& unit : inventory_.units) {
      for (const std::string& path : unit.nodes) {
        if (request_.owed->find(path) == nullptr) {
          probe.paths.push_back(path);
        }
      }
    }
    return probe;
  }

  [[nodiscard]] NodeState judge(const OwedNode& owed, const NodeView& seen) const {
    NodeState state;
    state.owed = {request_.owed, owed};
    state.seen = seen;
    state.seen.path = owed.path;
    state.gates = judge_rules(owed);
    const Access access = owed.access & kReadWrite;
    const bool is_half = access != Access::none && access != kReadWrite;
    if (is_half && state.gates.kind == Answer::Kind::allow && state.seen.access == EPERM) {
      state.seen.access.reset();  // the probe asks for reading and writing, and only one of them is owed
    }
    state.diagnosis = classify(state.seen, facts_of(state));
    return state;
  }

  [[nodiscard]] NodeState unseen(const OwedNode& owed, const std::string& why) const {
    NodeState state;
    state.owed = {request_.owed, owed};
    state.seen.path = owed.path;
    state.gates = judge_rules(owed);
    state.diagnosis = {container::AccessFailure::unknown, why};
    return state;
  }

  // Looking the paths up without entering the container is enough where everything else follows from what is known.
  Result<std::vector<NodeView>> see(kernel::NodeProber& prober) const {
    const kernel::ProbeRequest request = probe_request();
    if (request_.depth == kernel::Depth::access && rights_) {
      Result<std::vector<NodeView>> seen = prober.look_up(request);
      const bool hangs = !seen && seen.error().code == std::errc::timed_out;
      if (hangs || (seen && complete(*seen))) {
        return seen;
      }
    }
    return prober.probe(request);
  }

 private:
  // Asks for as much as if it were owed.
  static OwedNode not_owed(const NodeView& seen) {
    OwedNode node;
    node.path = seen.path;
    node.device = seen.device;
    node.access = kReadWrite;
    return node;
  }

  // Adds what access(2) would give. False where only a try tells.
  bool complete(std::vector<NodeView>& seen) const {
    const std::vector<OwedNode>& owed = request_.owed->nodes;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const bool is_there = seen[i].lookup_error == 0 && seen[i].device;
      if (!is_there) {
        continue;  // it is not tried then
      }
      const OwedNode node = i < owed.size() ? owed[i] : not_owed(seen[i]);
      seen[i].access = access_by_rules(seen[i], node, judge_rules(node), rights_->user);
      if (!seen[i].access) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] Answer judge_rules(const OwedNode& owed) const {
    if (!request_.observed_problem.empty() || !owed.device) {
      return {Answer::Kind::unknown, owed.device ? request_.observed_problem : "its driver is not loaded"};
    }
    return container::judge(request_.observed, request_for(owed));
  }

  [[nodiscard]] container::NodeFacts facts_of(const NodeState& state) const {
    container::NodeFacts facts;
    const device::Node* on_host = inventory_.find(state.owed->path);
    facts.host_has_node = on_host != nullptr && on_host->live.has_value();
    if (!facts.host_has_node && on_host == nullptr && state.owed->device_class.empty()) {
      facts.host_has_node = kernel::read_node(host_, state.owed->path).has_value();
    }
    if (state.seen.device) {
      facts.driver = driver_with(inventory_.drivers, state.seen.device->kind, state.seen.device->major);
    }
    facts.wanted = state.owed->device;
    facts.gates = state.gates.kind;
    facts.gates_detail = state.gates.detail;
    facts.bits_allow = !rights_ || bits_allow(state.seen, rights_->user);
    return facts;
  }

  const kernel::Host& host_;
  const device::Inventory& inventory_;
  const ViewRequest& request_;
  Result<kernel::Rights> rights_;
};

}  // namespace

ContainerView view_container(const kernel::Host& host, kernel::NodeProber& prober, const device::Inventory& inventory,
                             const ViewRequest& request) {
  const ContainerViewer viewer(host, inventory, request);
  const Result<std::vector<NodeView>> seen = viewer.see(prober);
  ContainerView view;
  view.has_timed_out = !seen && seen.error().code == std::errc::timed_out;
  const std::vector<OwedNode>& owed = request.owed->nodes;
  for (std::size_t i = 0; i < owed.size(); ++i) {
    view.nodes.push_back(seen ? viewer.judge(owed[i], (*seen)[i]) : viewer.unseen(owed[i], seen.error().message));
  }
  for (std::size_t i = owed.size(); seen && i < seen->size(); ++i) {
    if ((*seen)[i].lookup_error == 0 && (*seen)[i].device) {
      view.not_owed.push_back((*seen)[i]);
    }
  }
  return view;
}

std::vector<NodeState> unseen_nodes(const Shared<container::Entitlement>& owed, const std::string& why) {
  std::vector<NodeState> nodes;
  nodes.reserve(owed->nodes.size());
  for (const OwedNode& node : owed->nodes) {
    NodeState& state = nodes.emplace_back();
    state.owed = {owed, node};
    state.seen.path = node.path;
    state.gates = {Answer::Kind::unknown, why};
    state.diagnosis = {container::AccessFailure::unknown, why};
  }
  return nodes;
}

}  // namespace hf::host
