#include "services/guard/view.h"

#include <algorithm>
#include <ranges>

#include "kernel/filters.h"
#include "kernel/observe.h"
#include "node/seat_view.h"

namespace hf::guard {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kFirstPause = 10 * kSecond;
constexpr std::uint64_t kLongestPause = 600 * kSecond;

}  // namespace

std::vector<container::NodeState> View::to_mend() const {
  std::vector<container::NodeState> found;
  std::ranges::copy_if(nodes, std::back_inserter(found), [this](const container::NodeState& node) {
    return can_be_made_anew(node) && ward->healed->find(node.owed.path) != nullptr;
  });
  return found;
}

View look_inside(const Eyes& eyes, const WardPtr& ward, const device::Inventory& inventory,
                 std::chrono::milliseconds limit) {
  kernel::Filters filters(eyes.host, eyes.bpf);
  const Result<container::Observed> observed = kernel::observe(filters, ward->handle->actual());
  const container::Observed nothing;
  const std::string problem = observed ? "" : observed.error().message;
  const node::Seating seating{*ward->handle, *ward->owed,           observed ? *observed : nothing,
                              problem,       kernel::Depth::access, limit};
  node::SeatView seen = node::look_from_seat(eyes.host, eyes.seats, inventory, seating);
  return {ward, std::move(seen.nodes), seen.has_timed_out};
}

void LookSchedule::follow(const std::vector<WardPtr>& wards) {
  std::map<std::string, Entry> before = std::exchange(entries_, {});
  queue_.clear();
  for (const WardPtr& ward : wards) {
    std::string key = key_of(*ward);
    const auto known = before.find(key);
    Entry& entry = entries_[std::move(key)];
    entry.ward = ward;
    entry.pause = known == before.end() ? 0 : known->second.pause;
    set_due(entry, known == before.end() ? 0 : known->second.due_at);
  }
}

void LookSchedule::expect_all() {
  for (Entry& entry : entries_ | std::views::values) {
    set_due(entry, entry.due_at == kNever ? 0 : entry.due_at);
  }
}

void LookSchedule::expect(const Ward& ward) {
  if (const auto entry = entries_.find(key_of(ward)); entry != entries_.end() && entry->second.due_at == kNever) {
    set_due(entry->second, 0);
  }
}

WardPtr LookSchedule::find_due(std::uint64_t now) const {
  return next_due() > now || queue_.empty() ? nullptr : queue_.begin()->second->ward;
}

void LookSchedule::has_looked(const View& view, std::uint64_t now) {
  const auto known = entries_.find(key_of(*view.ward));
  if (known == entries_.end()) {
    return;
  }
  Entry& entry = known->second;
  entry.pause = !view.has_timed_out ? 0 : entry.pause == 0 ? kFirstPause : std::min(kLongestPause, entry.pause * 2);
  set_due(entry, entry.pause == 0 ? kNever : now + entry.pause);
}

std::uint64_t LookSchedule::next_due() const { return queue_.empty() ? kNever : queue_.begin()->first; }

void LookSchedule::set_due(Entry& entry, std::uint64_t at) {
  queue_.erase({entry.due_at, &entry});
  entry.due_at = at;
  if (at != kNever) {
    queue_.emplace(at, &entry);
  }
}

}  // namespace hf::guard
