// Status: the daemon's status in a file, for programs that do not connect to the daemon.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "adapters/journal/run_file.h"
#include "core/base/result.h"
#include "core/container/guard/tier.h"
#include "kernel/files/host.h"

namespace hf::journal {

inline constexpr const char* kStatusFile = "/run/holdfast/status.json";

struct Status {
  RunningProgram program;
  container::Tiers tiers;
};

std::string render_status(const Status& status);
Result<Status> parse_status(std::string_view text);

// Replaces the file by rename, in a directory that only root may write.
Result<void> write_status(const kernel::Host& host, const Status& status);
// Absent if no daemon is running.
std::optional<Status> read_status(const kernel::Host& host);

}  // namespace hf::journal
