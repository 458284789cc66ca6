#include "core/report/history.h"

namespace hf::report {
namespace {

bool gave_back(Action action) {
  return action == Action::healed || action == Action::waits || action == Action::recreated ||
         action == Action::completed;
}

}  // namespace

void add_to(Histories& histories, const BlameRecord& record) {
  History& history = histories[record.id];
  history.at = record.at;
  history.rewrites += record.is_loss() || record.is_shielded ? 1 : 0;
  if (gave_back(record.action)) {
    history.last_loss.reset();  // what is missing now was lost later
  } else if (record.is_loss()) {
    history.last_loss = {record.at / 1000, record.writer.is_known() ? title_of(record.writer) : "", record.devices};
  }
  history.is_completed =
      history.is_completed || record.action == Action::completed || record.action == Action::recreated;
}

Histories histories_of(const std::vector<BlameRecord>& records) {
  Histories histories;
  for (const BlameRecord& record : records) {
    add_to(histories, record);
  }
  return histories;
}

}  // namespace hf::report
