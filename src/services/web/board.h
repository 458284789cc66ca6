// Board: where the daemon pins its latest picture and its records, and the server's thread reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "core/report/blame.h"
#include "core/report/snapshot.h"
#include "kernel/poller.h"

namespace hf::web {

// Written by one thread, read by many. Nothing here waits for a reader: one that lags loses the oldest records.
class Board {
 public:
  static constexpr std::size_t kMostRecords = 512;

  void publish(std::shared_ptr<const report::Snapshot> snapshot);  // owned by whoever still shows it
  void publish(const report::BlameRecord& record);

  [[nodiscard]] std::shared_ptr<const report::Snapshot> latest() const;  // null: none yet

  // Records in the order they came, from the one with this place on; places count from 0 for the first ever published.
  struct Batch {
    std::uint64_t first = 0;  // the place of the first; above what was asked for where the oldest are gone
    std::vector<std::shared_ptr<const report::BlameRecord>> records;
  };
  [[nodiscard]] Batch records_from(std::uint64_t place) const;

  // Rings when something is published, as long as somebody keeps it.
  [[nodiscard]] std::shared_ptr<const kernel::Bell> bell() const;

 private:
  void ring() const;  // with the mutex held

  mutable std::mutex mutex_;
  std::shared_ptr<const report::Snapshot> snapshot_;
  std::deque<std::shared_ptr<const report::BlameRecord>> records_;
  std::uint64_t first_ = 0;
  mutable std::vector<std::weak_ptr<const kernel::Bell>> bells_;
};

}  // namespace hf::web
