// History: what the blame records say about a container, as far as findings depend on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/report/blame.h"

namespace hf::report {

struct History {
  std::size_t rewrites = 0;   // rule rewrites that took a device away, or would have without the shield
  bool is_completed = false;  // the guard added nodes or rules that the runtime had left out
  struct Loss {
    std::int64_t at = 0;  // seconds since 1970
    std::string writer;   // "": unknown
    std::vector<std::string> devices;
  };
  std::optional<Loss> last_loss = std::nullopt;  // that has not been made good
  std::int64_t at = 0;                           // of the latest record, milliseconds since 1970
};

using Histories = std::map<std::string, History>;  // by container id

// Records are added in their order.
void add_to(Histories& histories, const BlameRecord& record);
Histories histories_of(const std::vector<BlameRecord>& records);

}  // namespace hf::report
