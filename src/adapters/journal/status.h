// Status: what the daemon says of itself in a file, for those who ask without it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/container/cgroup_path.h"
#include "core/container/tier.h"
#include "kernel/host.h"

namespace hf::journal {

inline constexpr const char* kStatusFile = "/run/holdfast/status.json";

struct Status {
  container::Pid pid;
  std::int64_t started_ticks = 0;  // of the process: a pid alone may be somebody else's by now
  std::string version;
  container::Tiers tiers;
};

std::string render_status(const Status& status);
Result<Status> parse_status(std::string_view text);

// By rename, in a folder of root's alone.
Result<void> write_status(const kernel::Host& host, const Status& status);
void remove_status(const kernel::Host& host);
// Absent where no daemon runs now.
std::optional<Status> read_status(const kernel::Host& host);

}  // namespace hf::journal
