#include "services/web/board.h"

#include <algorithm>
#include <utility>

namespace hf::web {

void Board::publish(std::shared_ptr<const report::Snapshot> snapshot) {
  const std::scoped_lock lock(mutex_);
  std::swap(snapshot_, snapshot);  // the old one is freed after the lock is released
  wake_subscribers();
}

void Board::publish(const report::BlameRecord& record) {
  auto copy = std::make_shared<const report::BlameRecord>(record);
  const std::scoped_lock lock(mutex_);
  records_.push_back(std::move(copy));
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

std::shared_ptr<const kernel::Wakeup> Board::subscribe() const {
  auto wakeup = std::make_shared<const kernel::Wakeup>();
  const std::scoped_lock lock(mutex_);
  subscribers_.emplace_back(wakeup);
  return wakeup;
}

void Board::wake_subscribers() const {
  std::erase_if(subscribers_, [](const std::weak_ptr<const kernel::Wakeup>& subscriber) {
    const std::shared_ptr<const kernel::Wakeup> wakeup = subscriber.lock();
    if (wakeup) {
      wakeup->ring();
    }
    return !wakeup;
  });
}

}  // namespace hf::web
