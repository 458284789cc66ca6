#include "core/notice/event_queue.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

namespace hf::notice {
namespace {

// FNV-1a: names of events must be the same for the same event and differ for others; a collision gains an attacker
// nothing.
std::uint64_t hash(std::string_view text, std::uint64_t before = 14695981039346656037U) {
  std::uint64_t value = before;
  for (const char character : text) {
    value = (value ^ std::uint8_t(character)) * 1099511628211U;
  }
  return (value ^ 0xffU) * 1099511628211U;  // a border between two texts
}

std::uint64_t key_of(const PodEvent& event) {
  return hash(to_string(event.reason), hash(event.pod.container, hash(event.pod.uid)));
}

// Kubernetes: at most 253 characters, and no dot or hyphen before a dot.
std::string name_of(const PodEvent& event, std::uint64_t key) {
  constexpr std::size_t kLongest = 230;
  std::array<char, 16> digits{};
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), hash(std::to_string(event.at), key), 16);
  std::string name = event.pod.name.substr(0, kLongest);
  while (!name.empty() && (name.back() == '.' || name.back() == '-')) {
    name.pop_back();
  }
  return name + "." + std::string(digits.data(), end);
}

}  // namespace

void EventQueue::add(const PodEvent& event, std::uint64_t now, double random) {
  forget(now);
  const std::uint64_t key = key_of(event);
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    make_room();
    found = entries_.try_emplace(key).first;
    Entry& entry = found->second;
    entry.name = name_of(event, key);
    entry.first_at = event.at;
    entry.pause = limits_.first_repeat;
    const std::uint64_t spread = is_warning(event.reason) ? limits_.warning_spread : limits_.spread;
    entry.due = now + std::uint64_t(double(spread) * random);
  }
  Entry& entry = found->second;
  entry.event = event;
  entry.count += 1;
  entry.changed = now;
}

// Warnings first, then what has waited longest.
bool EventQueue::goes_before(const Entry& one, const Entry& other) {
  return std::tuple(!is_warning(one.event.reason), one.due) < std::tuple(!is_warning(other.event.reason), other.due);
}

std::optional<EventWrite> EventQueue::next(std::uint64_t now) {
  if (node_.next_due() > now) {
    return std::nullopt;
  }
  auto best = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (due_of(it->second) <= now && (best == entries_.end() || goes_before(it->second, best->second))) {
      best = it;
    }
  }
  if (best == entries_.end()) {
    return std::nullopt;
  }
  Entry& entry = best->second;
  bucket_of(entry.event.pod.uid).take(now);
  node_.take(now);
  entry.due = now + entry.pause;
  entry.pause = std::min(entry.pause * 2, limits_.longest_repeat);
  entry.changed = now;
  return EventWrite{best->first, !entry.exists, entry.name, entry.event, entry.count, entry.first_at, entry.event.at};
}

void EventQueue::settle(const EventWrite& write, Outcome outcome, std::uint64_t now) {
  const auto found = entries_.find(write.key);
  if (found == entries_.end()) {
    return;
  }
  Entry& entry = found->second;
  switch (outcome) {
    case Outcome::written:
      entry.exists = true;
      entry.written = write.count;
      return;
    case Outcome::refused: entries_.erase(found); return;
    case Outcome::gone:  // it has expired: what happened since begins another one
      entry.exists = false;
      entry.name = name_of(entry.event, write.key);
      entry.first_at = entry.event.at;
      entry.count = std::max(entry.count - entry.written, 1U);
      entry.written = 0;
      entry.due = now;
      return;
  }
}

std::uint64_t EventQueue::next_due() const {
  std::uint64_t due = kNever;
  for (const auto& [key, entry] : entries_) {
    due = std::min(due, due_of(entry));
  }
  return due == kNever ? kNever : std::max(due, node_.next_due());
}

// When the entry may be written, as far as its pod's budget allows it.
std::uint64_t EventQueue::due_of(const Entry& entry) const {
  if (entry.written == entry.count) {
    return kNever;
  }
  const auto bucket = pods_.find(entry.event.pod.uid);
  return std::max(entry.due, bucket == pods_.end() ? 0 : bucket->second.next_due());
}

TokenBucket& EventQueue::bucket_of(const std::string& pod) {
  return pods_.try_emplace(pod, TokenBucket(limits_.pod)).first->second;
}

void EventQueue::make_room() {
  if (entries_.size() < limits_.most_events) {
    return;
  }
  // What is written already is no loss, and what is no warning a smaller one.
  const auto worth = [](const auto& entry) {
    const Entry& it = entry.second;
    return std::tuple(it.written != it.count, is_warning(it.event.reason), it.changed);
  };
  const auto least = std::ranges::min_element(entries_, {}, worth);
  dropped_ += least->second.count - least->second.written;
  entries_.erase(least);
}

// After an hour without a repetition the server has forgotten the event as well.
void EventQueue::forget(std::uint64_t now) {
  constexpr std::uint64_t kLife = 3'600'000'000'000;
  std::erase_if(entries_, [&](const auto& entry) {
    return entry.second.written == entry.second.count && now - entry.second.changed > kLife;
  });
  std::erase_if(pods_, [now](const auto& entry) { return entry.second.is_full(now); });
}

}  // namespace hf::notice
