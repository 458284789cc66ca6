// Details: are command lines of writers shown to whoever asks? They may hold secrets.
#pragma once

#include <cstdint>

#include "core/report/blame.h"
#include "core/report/snapshot.h"

namespace hf::web {

enum class Details : std::uint8_t { hidden, shown };

// The same without command lines; the program's name stays.
report::BlameRecord without_details(const report::BlameRecord& record);
report::Snapshot without_details(const report::Snapshot& snapshot);

}  // namespace hf::web
