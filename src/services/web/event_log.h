// EventLog: records as server-sent events, each rendered once for all streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "services/web/board.h"
#include "services/web/details.h"
#include "services/web/reply.h"

namespace hf::web {

class EventLog {
 public:
  static constexpr std::size_t kMostBytes = std::size_t(4) << 20;

  void follow(const Board& board);  // adds the board's new records

  [[nodiscard]] std::uint64_t first() const { return end_ - events_.size(); }  // positions as of the board
  [[nodiscard]] std::uint64_t end() const { return end_; }
  [[nodiscard]] Body at(std::uint64_t position, Details details) const {
    const Event& event = events_[std::size_t(position - first())];
    return details == Details::shown ? event.text : event.brief;
  }

  // Where to continue for a client that has seen the record with this number.
  [[nodiscard]] std::uint64_t position_after(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t missed_since(std::uint64_t number) const;  // number of records that were dropped

 private:
  struct Event {
    std::uint64_t number;
    Body text;
    Body brief;  // without details
  };

  std::deque<Event> events_;
  std::uint64_t end_ = 0;
  std::size_t bytes_ = 0;
};

std::string render_event(const report::BlameRecord& record);
std::string render_loss(std::uint64_t count);  // "event: lost": this many records were not sent

}  // namespace hf::web
