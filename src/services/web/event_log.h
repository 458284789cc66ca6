// EventLog: records as server-sent events, each rendered once for all who listen.
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

  void follow(const Board& board);  // takes what is new there

  [[nodiscard]] std::uint64_t first() const { return end_ - events_.size(); }  // places as of the board
  [[nodiscard]] std::uint64_t end() const { return end_; }
  [[nodiscard]] Body at(std::uint64_t place, Details details) const {
    const Event& event = events_[std::size_t(place - first())];
    return details == Details::shown ? event.text : event.brief;
  }

  // Where to go on for somebody who has seen the record with this number.
  [[nodiscard]] std::uint64_t place_after(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t missed_since(std::uint64_t number) const;  // how many are not here any more

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
std::string render_loss(std::uint64_t count);  // "event: lost": so many records were not sent

}  // namespace hf::web
