#include "services/web/event_log.h"
#include "render/blame.h"

#include <algorithm>

namespace hf::web {

void EventLog::follow(const Board& board) {
  const Board::Batch batch = board.records_from(end_);
  if (batch.first > end_) {  // the board has dropped records since, so the log would have a gap
    events_.clear();
    bytes_ = 0;
    end_ = batch.first;
  }
  for (const report::BlameRecordPtr& record : batch.records) {
    events_.push_back({record->number, std::make_shared<const std::string>(render_event(*record)),
                       std::make_shared<const std::string>(render_event(without_details(*record)))});
    bytes_ += events_.back().text->size() + events_.back().brief->size();
    ++end_;
  }
  while (events_.size() > Board::kMostRecords || bytes_ > kMostBytes) {
    bytes_ -= events_.front().text->size() + events_.front().brief->size();
    events_.pop_front();
  }
}

std::uint64_t EventLog::position_after(std::uint64_t number) const {
  const auto next = std::ranges::find_if(events_, [number](const Event& event) { return event.number > number; });
  return first() + std::uint64_t(next - events_.begin());
}

std::uint64_t EventLog::missed_since(std::uint64_t number) const {
  return events_.empty() || events_.front().number <= number ? 0 : events_.front().number - number - 1;
}

// A rendered line has no line break, so a name cannot inject another field.
std::string render_event(const report::BlameRecord& record) {
  return "id: " + std::to_string(record.number) + "\ndata: " + render_line(record) + "\n\n";
}

std::string render_loss(std::uint64_t count) {
  return "event: lost\ndata: {\"lost\": " + std::to_string(count) + "}\n\n";
}

}  // namespace hf::web
