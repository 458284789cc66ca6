// RunFile: a file in /run/holdfast by which a running program tells others about itself.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/container/cgroup/cgroup_path.h"
#include "kernel/files/host.h"

namespace hf::journal {

// Replaces the file by rename, in a directory that only root may write.
Result<void> write_run_file(const kernel::Host& host, const std::string& name, const std::string& text);

// Whether the process that wrote the file still runs: its pid may be reused.
bool is_running(const kernel::Host& host, container::Pid pid, std::int64_t started_ticks);

}  // namespace hf::journal
