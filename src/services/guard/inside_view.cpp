#include "services/guard/inside_view.h"

#include <algorithm>
#include <ranges>

#include "host/container_view.h"
#include "kernel/cgroup/filters.h"
#include "kernel/cgroup/observe.h"

namespace hf::guard {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kFirstPause = 10 * kSecond;
constexpr std::uint64_t kLongestPause = 600 * kSecond;

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
  kernel::Filters filters(tools.host, tools.bpf);
  const Result<container::Observed> observed = kernel::observe(filters, guarded->handle->actual());
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
    set_due(entry, known == before.end() ? 0 : known->second.due_at);
  }
}

void ProbeSchedule::make_all_due() {
  for (Entry& entry : entries_ | std::views::values) {
    set_due(entry, entry.due_at == kNever ? 0 : entry.due_at);
  }
}

void ProbeSchedule::make_due(const GuardedContainer& guarded) {
  if (const auto entry = entries_.find(key_of(guarded)); entry != entries_.end() && entry->second.due_at == kNever) {
    set_due(entry->second, 0);
  }
}

GuardedContainerPtr ProbeSchedule::find_due(std::uint64_t now) const {
  return next_due() > now || queue_.empty() ? nullptr : queue_.begin()->second->guarded;
}

void ProbeSchedule::has_probed(const InsideView& view, std::uint64_t now) {
  const auto known = entries_.find(key_of(*view.guarded));
  if (known == entries_.end()) {
    return;
  }
  Entry& entry = known->second;
  entry.pause = !view.has_timed_out ? 0 : entry.pause == 0 ? kFirstPause : std::min(kLongestPause, entry.pause * 2);
  set_due(entry, entry.pause == 0 ? kNever : now + entry.pause);
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
