#include "services/web/board.h"

#include <algorithm>
#include <utility>

namespace hf::web {

void Board::publish(std::shared_ptr<const report::Snapshot> snapshot) {
  const std::scoped_lock lock(mutex_);
  std::swap(snapshot_, snapshot);  // the old one is freed after the lock is released
  wake_subscribers();
}

void Board::publish(const report::BlameRecordPtr& record) {
  const std::scoped_lock lock(mutex_);
  records_.push_back(record);
  if (records_.size() > kMostRecords) {
    records_.pop_front();
    ++first_;
  }
  wake_subscribers();
}

std::shared_ptr<const report::Snapshot> Board::latest() const {
  const std::scoped_lock lock(mutex_);
  return snapshot_;
}

Board::Batch Board::records_from(std::uint64_t position) const {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t end = first_ + records_.size();
  const std::uint64_t from = std::clamp(position, first_, end);
  return {from, {records_.begin() + std::ptrdiff_t(from - first_), records_.end()}};
}

std::uint64_t Board::subscribe(std::function<void()> wake) const {
  const std::scoped_lock lock(mutex_);
  subscribers_.emplace(++last_subscription_, std::move(wake));
  return last_subscription_;
}

void Board::unsubscribe(std::uint64_t subscription) const {
  const std::scoped_lock lock(mutex_);
  subscribers_.erase(subscription);
}

void Board::wake_subscribers() const {
  for (const auto& [subscription, wake] : subscribers_) {
    wake();
  }
}

}  // namespace hf::web
