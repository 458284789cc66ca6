// RunFile: a file in /run/holdfast by which a running program tells others about itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/container/cgroup/cgroup_path.h"
#include "kernel/files/fd.h"
#include "kernel/files/host.h"

namespace hf::journal {

// Replaces the file by rename, in a directory that only root may write.
Result<void> write_run_file(const kernel::Host& host, const std::string& name, const std::string& text);

// Creates the file, and holds a lock on it as long as the descriptor is open. Fails with device_or_resource_busy,
// "HOLDER runs already (pid N)", where another process has it. A child does not inherit it: it may outlive a daemon
// that is killed.
Result<kernel::Fd> lock_file(int directory, const std::string& name, const std::string& holder);

// Held while a guard runs: two of them would undo each other's repairs, whatever their journals are.
Result<kernel::Fd> lock_host(const kernel::Host& host);
// The guard that runs.
std::optional<container::Pid> holder_of_host_lock(const kernel::Host& host);
// Removes the file of the lock, which must be held.
void remove_host_lock(const kernel::Host& host);

// Whether the process that wrote the file still runs: its pid may be reused.
bool is_running(const kernel::Host& host, container::Pid pid, std::int64_t started_ticks);

}  // namespace hf::journal
