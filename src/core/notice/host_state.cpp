#include "core/notice/host_state.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace hf::notice {
namespace {

using container::State;

PodEvent event_of(const ContainerState& it, Reason reason, std::int64_t at) {
  PodEvent event;
  event.pod = it.pod.value_or(container::Pod());
  event.container = it.id;
  event.reason = reason;
  event.at = at;
  event.devices = it.devices;
  event.detail = reason == Reason::device_restored ? std::string() : it.verdict;
  return event;
}

}  // namespace

bool ContainerState::lacks_something() const {
  return state == State::lost || state == State::partial || state == State::stale;
}

void StateWatch::note(const PodEvent& event, std::uint64_t now) {
  Known& known = known_[event.container];
  if (event.reason == Reason::device_lost) {
    known.lost_since = known.lost_since.value_or(now);
    known.is_announced = true;
  } else if (event.reason == Reason::device_restored) {
    known.lost_since.reset();
    known.is_announced = false;
  }
}

std::vector<PodEvent> StateWatch::follow(const HostState& state, std::uint64_t now) {
  std::vector<PodEvent> events;
  std::set<std::string_view> present;
  const std::vector<ContainerState> before = std::exchange(lacking_, {});
  began_ = began_.value_or(now);
  has_doubt_ = false;
  for (const ContainerState& it : state.containers) {
    present.insert(it.id);
    if (it.state == State::unknown) {
      keep(it, before, now);
      continue;
    }
    for (const PodEvent& event : it.state == State::not_owed ? follow_request(it, state.at, now)
                                 : it.lacks_something()      ? follow_loss(it, state.at, now)
                                                             : follow_rest(it, state.at, now)) {
      if (is_addressable(event.pod)) {
        events.push_back(event);
      }
    }
  }
  std::erase_if(known_, [&present](const auto& entry) { return !present.contains(entry.first); });
  return events;
}

// A probe that hangs, or has not run yet, says nothing: a loss stays. A container whose state was never known may have
// been lost all the time.
void StateWatch::keep(const ContainerState& it, const std::vector<ContainerState>& before, std::uint64_t now) {
  const Known& known = known_.try_emplace(it.id, Known{.lost_since = now}).first->second;
  has_doubt_ = has_doubt_ || (known.lost_since && !known.is_announced && *known.lost_since - *began_ < kSettled);
  if (known.is_announced && now - *known.lost_since >= kSettled) {
    const auto found = std::ranges::find(before, it.id, &ContainerState::id);
    lacking_.push_back(found == before.end() ? it : *found);
  }
}

std::vector<PodEvent> StateWatch::follow_loss(const ContainerState& it, std::int64_t at, std::uint64_t now) {
  Known& known = known_[it.id];
  known.lost_since = known.lost_since.value_or(now);
  if (now - *known.lost_since < kSettled) {
    return {};
  }
  lacking_.push_back(it);
  if (std::exchange(known.is_announced, true)) {
    return {};
  }
  return {event_of(it, Reason::device_lost, at)};
}

// What allocates devices may write it down a moment after the container was seen.
std::vector<PodEvent> StateWatch::follow_request(const ContainerState& it, std::int64_t at, std::uint64_t now) {
  Known& known = known_[it.id];
  known.ignored_since = known.ignored_since.value_or(now);
  if (now - *known.ignored_since < kSettled || std::exchange(known.is_ignored, true)) {
    return {};
  }
  return {event_of(it, Reason::device_request_ignored, at)};
}

std::vector<PodEvent> StateWatch::follow_rest(const ContainerState& it, std::int64_t at, std::uint64_t now) {
  Known& known = known_[it.id];
  std::vector<PodEvent> events;
  // A state that was read before the record of a loss says nothing about that loss.
  const bool is_older = known.is_announced && now - *known.lost_since < kSettled;
  if (known.is_announced && !is_older) {
    events.push_back(event_of(it, Reason::device_restored, at));
    events.back().duration = now - *known.lost_since;
    known.is_announced = false;
  }
  if (!is_older) {
    known.lost_since.reset();
  }
  const bool was_at_risk = std::exchange(known.is_at_risk, it.state == State::at_risk);
  if (known.is_at_risk && !was_at_risk) {
    events.push_back(event_of(it, Reason::device_at_risk, at));
  }
  return events;
}

}  // namespace hf::notice
