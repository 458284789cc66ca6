#include "services/web/details.h"

namespace hf::web {

report::BlameRecord without_details(const report::BlameRecord& record) {
  report::BlameRecord brief = record;
  brief.writer.command.clear();
  return brief;
}

report::Snapshot without_details(const report::Snapshot& snapshot) {
  report::Snapshot brief = snapshot;
  for (report::BlameRecordPtr& record : brief.records) {
    record = std::make_shared<const report::BlameRecord>(without_details(*record));
  }
  return brief;
}

}  // namespace hf::web
