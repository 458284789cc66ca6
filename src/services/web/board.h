// Board: the daemon publishes its latest snapshot and its records here; the server's thread reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/report/blame.h"
#include "core/report/snapshot.h"

namespace hf::web {

// Written by one thread, read by many. The writer never waits for a reader: one that lags loses the oldest records.
class Board {
 public:
  static constexpr std::size_t kMostRecords = 512;

  void publish(std::shared_ptr<const report::Snapshot> snapshot);  // shared with the replies that are being sent
  void publish(const report::BlameRecordPtr& record);

  [[nodiscard]] std::shared_ptr<const report::Snapshot> latest() const;  // null: nothing was published yet

  // Records in order of publication, from this position on; positions count from 0 for the first ever published.
  struct Batch {
    std::uint64_t first = 0;  // position of the first; higher than requested if the oldest were dropped
    std::vector<report::BlameRecordPtr> records;
  };
  [[nodiscard]] Batch records_from(std::uint64_t position) const;

  // Calls `wake` whenever something is published, from the publisher's thread: it must not wait or use the board.
  // Returns the number of the subscription. After unsubscribe() it is not called any more.
  std::uint64_t subscribe(std::function<void()> wake) const;
  void unsubscribe(std::uint64_t subscription) const;

 private:
  void wake_subscribers() const;  // the mutex must be held

  mutable std::mutex mutex_;
  std::shared_ptr<const report::Snapshot> snapshot_;
  std::deque<report::BlameRecordPtr> records_;
  std::uint64_t first_ = 0;
  mutable std::map<std::uint64_t, std::function<void()>> subscribers_;
  mutable std::uint64_t last_subscription_ = 0;
};

}  // namespace hf::web
