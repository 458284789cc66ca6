#include "services/guard/view.h"

#include <algorithm>
#include <ranges>
#include <set>

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

void LookSchedule::expect_all() {
  for (auto& [id, entry] : entries_) {
    entry.is_done = false;
  }
}

void LookSchedule::expect(const Ward& ward) {
  if (const auto entry = entries_.find(key_of(ward)); entry != entries_.end()) {
    entry->second.is_done = false;
  }
}

bool LookSchedule::is_due(const Ward& ward, std::uint64_t now) const {
  const auto entry = entries_.find(key_of(ward));
  return entry == entries_.end() || (!entry->second.is_done && entry->second.retry_at <= now);
}

void LookSchedule::has_looked(const View& view, std::uint64_t now) {
  Entry& entry = entries_[key_of(*view.ward)];
  entry.is_done = !view.has_timed_out;
  entry.pause = !view.has_timed_out ? 0 : entry.pause == 0 ? kFirstPause : std::min(kLongestPause, entry.pause * 2);
  entry.retry_at = entry.pause == 0 ? 0 : now + entry.pause;
}

void LookSchedule::forget_all_but(const std::vector<WardPtr>& wards) {
  std::set<std::string> there;
  for (const WardPtr& ward : wards) {
    there.insert(key_of(*ward));
  }
  std::erase_if(entries_, [&there](const auto& entry) { return !there.contains(entry.first); });
}

std::uint64_t LookSchedule::next_retry() const {
  std::uint64_t next = 0;
  for (const Entry& entry : entries_ | std::views::values) {
    if (!entry.is_done && entry.retry_at != 0) {
      next = next == 0 ? entry.retry_at : std::min(next, entry.retry_at);
    }
  }
  return next;
}

}  // namespace hf::guard
