#include "services/web/board.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <poll.h>

#include "services/web/event_log.h"

namespace hf::web {
namespace {

report::BlameRecordPtr numbered(std::uint64_t number) {
  report::BlameRecord record;
  record.number = number;
  return std::make_shared<const report::BlameRecord>(std::move(record));
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
  int first = 0;
  int second = 0;
  const std::uint64_t subscription = board.subscribe([&first] { ++first; });
  board.subscribe([&second] { ++second; });
  board.publish(numbered(1));
  EXPECT_EQ(first, 1);
  board.unsubscribe(subscription);
  board.publish(std::make_shared<report::Snapshot>());
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
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
  report::BlameRecord large;
  large.number = 1;
  large.lost.assign(100, std::string(256, '\x01'));
  for (int i = 0; i < 200; ++i) {
    board.publish(std::make_shared<const report::BlameRecord>(large));
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
  report::BlameRecord record;
  record.container = "x\n\ndata: fake\r\nid: 9";
  const std::string event = render_event(record);
  EXPECT_EQ(event.find('\r'), std::string::npos);
  EXPECT_EQ(std::ranges::count(event, '\n'), 3);
}

}  // namespace
}  // namespace hf::web
