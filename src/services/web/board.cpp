#include "services/web/board.h"

#include <algorithm>
#include <utility>

namespace hf::web {

void Board::publish(std::shared_ptr<const report::Snapshot> snapshot) {
  const std::scoped_lock lock(mutex_);
  std::swap(snapshot_, snapshot);  // the old one goes after the lock does
  ring();
}

void Board::publish(const report::BlameRecord& record) {
  auto copy = std::make_shared<const report::BlameRecord>(record);
  const std::scoped_lock lock(mutex_);
  records_.push_back(std::move(copy));
  if (records_.size() > kMostRecords) {
    records_.pop_front();
    ++first_;
  }
  ring();
}

std::shared_ptr<const report::Snapshot> Board::latest() const {
  const std::scoped_lock lock(mutex_);
  return snapshot_;
}

Board::Batch Board::records_from(std::uint64_t place) const {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t end = first_ + records_.size();
  const std::uint64_t from = std::clamp(place, first_, end);
  return {from, {records_.begin() + std::ptrdiff_t(from - first_), records_.end()}};
}

std::shared_ptr<const kernel::Bell> Board::bell() const {
  auto bell = std::make_shared<const kernel::Bell>();
  const std::scoped_lock lock(mutex_);
  bells_.emplace_back(bell);
  return bell;
}

void Board::ring() const {
  std::erase_if(bells_, [](const std::weak_ptr<const kernel::Bell>& listener) {
    const std::shared_ptr<const kernel::Bell> bell = listener.lock();
    if (bell) {
      bell->ring();
    }
    return !bell;
  });
}

}  // namespace hf::web
