// Blame: records of the journal as lines of JSON and as a timeline for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/report/blame.h"

namespace hf::report {

std::string render_line(const BlameRecord& record);
Result<BlameRecord> parse_blame_record(std::string_view line);     // the reverse of render_line
std::string render_text(const std::vector<BlameRecord>& records);  // a timeline for people
std::string render_json(const std::vector<BlameRecord>& records);
// TIME, CONTAINER, CHANGE, LOST, DONE: a row for a table of several hosts.
std::vector<std::string> blame_columns();
std::vector<std::string> cells_of(const BlameRecord& record);
std::string render_text(const BlameRecord& record);  // a few lines, as `watch` prints them

}  // namespace hf::report
