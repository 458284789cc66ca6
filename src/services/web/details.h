// Details: whether command lines of writers are shown to clients. They may contain secrets.
#pragma once

#include <cstdint>

#include "core/report/blame.h"
#include "core/report/snapshot.h"

namespace hf::web {

enum class Details : std::uint8_t { hidden, shown };

// A copy without command lines; the program's name stays.
report::BlameRecord without_details(const report::BlameRecord& record);
report::Snapshot without_details(const report::Snapshot& snapshot);

}  // namespace hf::web
