// EventQueue: events of pods that wait to be written. Repetitions become the count of one event, and each pod and this
// cluster node have a budget, so that a storm of attacks makes a handful of writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/notice/pod_event.h"
#include "core/notice/token_bucket.h"

namespace hf::notice {

// Times are nanoseconds. The defaults are those of docs/SCALE.md.
struct EventLimits {
  BucketSize pod = {6, 60'000'000'000};              // writes about one pod: six, then one a minute
  BucketSize node = {12, 10'000'000'000};            // of this cluster node: twelve, then one in ten seconds
  std::uint64_t warning_spread = 15'000'000'000;     // the first write waits for a random part of this: many hosts
  std::uint64_t spread = 120'000'000'000;            // see the same at once; what is no warning has time
  std::uint64_t first_repeat = 60'000'000'000;       // until a repetition is written; doubles with each write
  std::uint64_t longest_repeat = 1'800'000'000'000;  // half an hour: an event lives for an hour
  std::size_t most_events = 256;                     // first to go: what is written, then what is no warning
};

// An event to be created, or one that was created and has happened again.
struct EventWrite {
  std::uint64_t key = 0;
  bool is_new = true;
  std::string name;  // of the object
  PodEvent event;    // the latest
  std::uint32_t count = 1;
  std::int64_t first_at = 0;  // milliseconds since 1970
  std::int64_t last_at = 0;
};

// gone: the event that was to be changed does not exist any more. refused: it will never be written.
enum class Outcome : std::uint8_t { written, gone, refused };

class EventQueue {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t(0);

  explicit EventQueue(EventLimits limits = {}) : limits_(limits), node_(limits.node) {}

  void add(const PodEvent& event, std::uint64_t now, double random);  // random: from 0 to 1
  std::optional<EventWrite> next(std::uint64_t now);                  // takes it from the budgets
  void settle(const EventWrite& write, Outcome outcome, std::uint64_t now);
  [[nodiscard]] std::uint64_t next_due() const;

  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    PodEvent event;
    std::string name;
    std::uint32_t count = 0;
    std::uint32_t written = 0;  // of the count
    std::int64_t first_at = 0;
    std::uint64_t changed = 0;  // when it was added or written last
    std::uint64_t due = 0;
    std::uint64_t pause = 0;  // before the next repetition
    bool exists = false;      // on the server
  };
  using Entries = std::map<std::uint64_t, Entry>;

  static bool goes_before(const Entry& one, const Entry& other);
  [[nodiscard]] std::uint64_t due_of(const Entry& entry) const;
  TokenBucket& bucket_of(const std::string& pod);
  void make_room();
  void forget(std::uint64_t now);

  EventLimits limits_;
  Entries entries_;  // by pod, container and reason
  std::map<std::string, TokenBucket> pods_;
  TokenBucket node_;
  std::uint64_t dropped_ = 0;
};

}  // namespace hf::notice
