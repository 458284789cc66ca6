// The recorder's snapshots: one picture of the host, with what the doctor and the last visits say.
#include <algorithm>
#include <ranges>

#include <malloc.h>

#include "adapters/journal/plugin_status.h"
#include "core/report/verdict.h"
#include "host/container_view.h"
#include "kernel/files/clock.h"
#include "services/guard/recorder.h"

namespace hf::guard {
namespace {

using container::AccessFailure;
using container::NodeState;

constexpr std::uint64_t kBetweenTrims = 5'000'000'000;

// A pod's pause container is no container to people: ps and doctor do not count it either.
bool is_shown(const container::Container& container) { return !container.is_sandbox; }

// Does the last visit contradict the older probe from inside?
bool is_outdated(const NodeState& node, const std::vector<std::string>& denied_paths) {
  const bool denied = std::ranges::find(denied_paths, node.owed->path) != denied_paths.end();
  return node.diagnosis.failure == (denied ? AccessFailure::none : AccessFailure::cgroup_denies);
}

// The nodes as probed from inside, corrected by the last visit. Copied only where they differ: there are thousands of
// them in every snapshot.
Shared<std::vector<NodeState>> as_visited(const Shared<std::vector<NodeState>>& seen,
                                          const std::vector<std::string>& denied_paths) {
  if (std::ranges::none_of(*seen, [&](const NodeState& node) { return is_outdated(node, denied_paths); })) {
    return seen;
  }
  std::vector<NodeState> nodes = *seen;
  for (NodeState& node : nodes) {
    if (is_outdated(node, denied_paths)) {
      const bool denied = node.diagnosis.failure == AccessFailure::none;
      node.diagnosis = denied ? container::Diagnosis{AccessFailure::cgroup_denies, "the device cgroup denies it"}
                              : container::Diagnosis{};
    }
  }
  return nodes;
}

}  // namespace

report::ContainerStatus Recorder::status_of(const GuardedContainerPtr& shared) const {
  const GuardedContainer& guarded = *shared;
  report::ContainerStatus status;
  status.container = {shared, guarded.container};
  status.owed = guarded.owed;
  status.mode = to_string(guarded.mode);
  const auto score = scores_.find(guarded.container.id.value);
  const Score none;
  const Score& known = score == scores_.end() ? none : score->second;
  status.losses = known.losses;
  status.heals = known.heals;
  status.last_loss_at = known.last_loss_at;
  status.is_hardened = known.is_hardened;
  status.is_locked = known.is_locked;
  status.is_shielded = known.is_shielded;
  status.why_not_shielded = known.why_not_shielded;
  status.held_opens = known.held_opens;
  const auto view = views_.find(key_of(guarded));
  status.nodes = view != views_.end() ? view->second : Shared(host::unseen_nodes(guarded.owed, "not probed yet"));
  if (score != scores_.end()) {
    status.nodes = as_visited(status.nodes, known.denied);
  }
  judge(status);
  return status;
}

// Adds what the doctor has found: the state must not be better than the findings beside it.
void Recorder::judge(report::ContainerStatus& status) const {
  bool at_risk = false;
  std::vector<const report::Finding*> found;
  const auto [first, last] = findings_.equal_range(status.container->id.value);
  for (const auto& [container, finding] : std::ranges::subrange(first, last)) {
    status.codes.push_back(finding->code);
    at_risk = at_risk || report::is_about_risk(*finding);
    found.push_back(finding);
  }
  status.state = state_with(state_of(*status.nodes, at_risk), found);
}

void Recorder::publish() {
  auto snapshot = std::make_shared<report::Snapshot>(snapshot_);
  snapshot->at = kernel::wall_now();
  if (survey_) {
    snapshot->inventory = survey_->inventory;
    snapshot->online_cpus = survey_->online_cpus;
    snapshot->containers.reserve(survey_->guarded_containers.size() + survey_->others.size());
    for (const GuardedContainerPtr& guarded : survey_->guarded_containers) {
      if (is_shown(guarded->container)) {
        snapshot->containers.push_back(status_of(guarded));
      }
    }
    for (const report::ContainerStatus& other : survey_->others) {
      if (is_shown(*other.container)) {
        judge(snapshot->containers.emplace_back(other));
      }
    }
  }
  if (std::optional<journal::PluginStatus> plugin = journal::read_plugin_status(host_)) {
    snapshot->offers = std::move(plugin->resources);
  }
  if (callbacks_.cpus) {
    snapshot->cpus = callbacks_.cpus();
  }
  is_dirty_ = false;
  callbacks_.snapshot(std::move(snapshot));
  const std::uint64_t now = kernel::monotonic_now();
  if (now - trimmed_at_ > kBetweenTrims) {  // the previous snapshot was just freed, and was as large
    trimmed_at_ = now;
    ::malloc_trim(0);
  }
}

}  // namespace hf::guard
