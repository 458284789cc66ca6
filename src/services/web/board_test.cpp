#include "services/web/board.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <poll.h>

#include "services/web/event_log.h"

namespace hf::web {
namespace {

report::BlameRecord numbered(std::uint64_t number) {
  report::BlameRecord record;
  record.number = number;
  return record;
}

bool is_signalled(const kernel::Wakeup& wakeup) {
  ::pollfd polled{wakeup.fd().get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

TEST(Board, HoldsTheLatestSnapshot) {
  Board board;
  EXPECT_EQ(board.latest(), nullptr);
  const auto first = std::make_shared<report::Snapshot>();
  board.publish(first);
  EXPECT_EQ(board.latest(), first);
  board.publish(std::make_shared<report::Snapshot>());
  EXPECT_NE(board.latest(), first);
  EXPECT_EQ(first.use_count(), 1);
}

TEST(Board, DropsTheOldestRecordsAndReportsWhereTheOthersBegin) {
  Board board;
  for (std::uint64_t i = 0; i < Board::kMostRecords + 10; ++i) {
    board.publish(numbered(100 + i));
  }
  EXPECT_EQ(board.records_from(0).first, 10U);
  EXPECT_EQ(board.records_from(0).records.size(), Board::kMostRecords);
  EXPECT_EQ(board.records_from(20).records.front()->number, 120U);
  EXPECT_TRUE(board.records_from(100'000).records.empty());
}

TEST(Board, WakesItsSubscribers) {
  Board board;
  const std::shared_ptr<const kernel::Wakeup> wakeup = board.subscribe();
  (void)board.subscribe();  // dropped at once
  EXPECT_FALSE(is_signalled(*wakeup));
  board.publish(numbered(1));
  EXPECT_TRUE(is_signalled(*wakeup));
  wakeup->silence();
  EXPECT_FALSE(is_signalled(*wakeup));
  board.publish(std::make_shared<report::Snapshot>());
  EXPECT_TRUE(is_signalled(*wakeup));
}

TEST(EventLog, ContinuesAfterTheLastRecordSeen) {
  Board board;
  EventLog log;
  log.follow(board);
  EXPECT_EQ(log.position_after(5), 0U);
  for (std::uint64_t number = 10; number < 20; ++number) {
    board.publish(numbered(number));
  }
  log.follow(board);
  EXPECT_EQ(log.position_after(12), 3U);
  EXPECT_EQ(log.position_after(99), 10U);
  EXPECT_EQ(log.missed_since(12), 0U);
  EXPECT_EQ(log.missed_since(7), 2U);
  EXPECT_TRUE(log.at(3, Details::shown)->starts_with("id: 13\ndata: {"));
}

TEST(EventLog, IsBoundedByBytesAndReportsDroppedRecords) {
  Board board;
  EventLog log;
  report::BlameRecord large = numbered(1);
  large.lost.assign(100, std::string(256, '\x01'));
  for (int i = 0; i < 200; ++i) {
    board.publish(large);
    log.follow(board);
  }
  EXPECT_EQ(log.end(), 200U);
  EXPECT_GT(log.first(), 100U);
  for (std::size_t i = 0; i < Board::kMostRecords + 5; ++i) {
    board.publish(numbered(2));
  }
  log.follow(board);
  EXPECT_EQ(log.first(), 205U);
}

TEST(Event, IsOneDataLineWhateverTheNamesContain) {
  report::BlameRecord record = numbered(7);
  record.container = "x\n\ndata: fake\r\nid: 9";
  const std::string event = render_event(record);
  EXPECT_EQ(event.find('\r'), std::string::npos);
  EXPECT_EQ(std::ranges::count(event, '\n'), 3);
}

}  // namespace
}  // namespace hf::web
