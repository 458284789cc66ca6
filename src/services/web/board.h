// Board: the daemon publishes its latest snapshot and its records here; the server's thread reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "core/report/blame.h"
#include "core/report/snapshot.h"
#include "kernel/net/poller.h"

namespace hf::web {

// Written by one thread, read by many. The writer never waits for a reader: one that lags loses the oldest records.
class Board {
 public:
  static constexpr std::size_t kMostRecords = 512;

  void publish(std::shared_ptr<const report::Snapshot> snapshot);  // shared with the replies that are being sent
  void publish(const report::BlameRecord& record);

  [[nodiscard]] std::shared_ptr<const report::Snapshot> latest() const;  // null: nothing was published yet

  // Records in order of publication, from this position on; positions count from 0 for the first ever published.
  struct Batch {
    std::uint64_t first = 0;  // position of the first; higher than requested if the oldest were dropped
    std::vector<std::shared_ptr<const report::BlameRecord>> records;
  };
  [[nodiscard]] Batch records_from(std::uint64_t position) const;

  // Signalled when something is published; the subscription ends when the caller drops the pointer.
  [[nodiscard]] std::shared_ptr<const kernel::Wakeup> subscribe() const;

 private:
  void wake_subscribers() const;  // the mutex must be held

  mutable std::mutex mutex_;
  std::shared_ptr<const report::Snapshot> snapshot_;
  std::deque<std::shared_ptr<const report::BlameRecord>> records_;
  std::uint64_t first_ = 0;
  mutable std::vector<std::weak_ptr<const kernel::Wakeup>> subscribers_;
};

}  // namespace hf::web
