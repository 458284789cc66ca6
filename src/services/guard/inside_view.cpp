#include "services/guard/inside_view.h"

#include <algorithm>
#include <ranges>

#include "host/container_view.h"
#include "kernel/cgroup/observe.h"

namespace hf::guard {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kFirstPause = 10 * kSecond;
constexpr std::uint64_t kLongestPause = 600 * kSecond;

// The kernel reports no removal of a node, so that all containers are probed again and again. A probe of one takes 0.05
// to 0.2 ms: a child looks the nodes up, and no process enters the container. With 1,000 of them a round takes 0.05 to
// 0.2 s, and comes every minute or three; with 50 of them it comes every 15 s.
constexpr std::uint64_t kRoundPause = 15 * kSecond;
constexpr std::uint64_t kRestShare = 1000;
constexpr std::uint64_t kBusyShare = 100;  // after surveys of everything, which events may request

using AccessFailures = std::vector<container::AccessFailure>;

AccessFailures failures_of(const InsideView& view) {
  AccessFailures failures;
  for (const container::NodeState& node : view.nodes) {
    if (node.is_inaccessible()) {
      failures.push_back(node.diagnosis.failure);
    }
  }
  return failures;
}

}  // namespace

std::vector<container::NodeState> InsideView::to_recreate() const {
  std::vector<container::NodeState> found;
  std::ranges::copy_if(nodes, std::back_inserter(found), [this](const container::NodeState& node) {
    return can_be_recreated(node) && guarded->healed->find(node.owed->path) != nullptr;
  });
  return found;
}

InsideView probe_inside(const ProbeTools& tools, const GuardedContainerPtr& guarded, const device::Inventory& inventory,
                        std::chrono::milliseconds limit) {
  const Result<container::Observed> observed = kernel::observe(tools.filters, guarded->handle->actual());
  const container::Observed nothing;
  const std::string problem = observed ? "" : observed.error().message;
  const host::ViewRequest request{*guarded->handle, guarded->owed,         observed ? *observed : nothing,
                                  problem,          kernel::Depth::access, limit};
  host::ContainerView seen = host::view_container(tools.host, tools.prober, inventory, request);
  return {guarded, std::move(seen.nodes), seen.has_timed_out};
}

void ProbeSchedule::follow(const std::vector<GuardedContainerPtr>& guarded_containers) {
  std::map<ContainerKey, Entry> before = std::exchange(entries_, {});
  queue_.clear();
  for (const GuardedContainerPtr& guarded : guarded_containers) {
    const ContainerKey key = key_of(*guarded);
    const auto known = before.find(key);
    Entry& entry = entries_[key];
    entry.guarded = guarded;
    entry.pause = known == before.end() ? 0 : known->second.pause;
    entry.failures = known == before.end() ? AccessFailures() : std::move(known->second.failures);
    set_due(entry, known == before.end() ? 0 : known->second.due_at);
  }
}

void ProbeSchedule::make_due(const GuardedContainer& guarded) {
  if (const auto entry = entries_.find(key_of(guarded)); entry != entries_.end() && entry->second.due_at == kNever) {
    set_due(entry->second, 0);
  }
}

void ProbeSchedule::make_all_due(std::uint64_t now) {
  if (now - round_at_ > kBusyShare * cost_) {
    start_round(now);
  }
}

void ProbeSchedule::start_round_if_due(std::uint64_t now) {
  if (now >= next_round() && next_due() > now) {
    start_round(now);
  }
}

std::uint64_t ProbeSchedule::next_round() const {
  return entries_.empty() ? kNever : round_at_ + std::max(kRoundPause, kRestShare * cost_);
}

void ProbeSchedule::start_round(std::uint64_t now) {
  round_at_ = now;
  cost_ = 0;
  for (Entry& entry : entries_ | std::views::values) {
    set_due(entry, entry.due_at == kNever ? now : entry.due_at);
  }
}

GuardedContainerPtr ProbeSchedule::find_due(std::uint64_t now) const {
  return next_due() > now || queue_.empty() ? nullptr : queue_.begin()->second->guarded;
}

bool ProbeSchedule::has_probed(const InsideView& view, std::uint64_t now, std::uint64_t cpu_ns) {
  cost_ += cpu_ns;
  const auto known = entries_.find(key_of(*view.guarded));
  if (known == entries_.end()) {
    return false;
  }
  Entry& entry = known->second;
  entry.pause = !view.has_timed_out ? 0 : entry.pause == 0 ? kFirstPause : std::min(kLongestPause, entry.pause * 2);
  set_due(entry, entry.pause == 0 ? kNever : now + entry.pause);
  return std::exchange(entry.failures, failures_of(view)) != entry.failures;
}

std::uint64_t ProbeSchedule::next_due() const { return queue_.empty() ? kNever : queue_.begin()->first; }

void ProbeSchedule::set_due(Entry& entry, std::uint64_t at) {
  queue_.erase({entry.due_at, &entry});
  entry.due_at = at;
  if (at != kNever) {
    queue_.emplace(at, &entry);
  }
}

}  // namespace hf::guard
