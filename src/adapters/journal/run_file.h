// RunFile: a file in /run/holdfast by which a running program tells others about itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "adapters/document/json.h"
#include "core/base/result.h"
#include "core/container/cgroup/cgroup_path.h"
#include "kernel/files/fd.h"
#include "kernel/files/file.h"
#include "kernel/files/host.h"

namespace hf::journal {

// The program that wrote a file.
struct RunningProgram {
  container::Pid pid;
  std::int64_t started_ticks = 0;  // when the process started: its pid may be reused later
  std::string version;
};
RunningProgram own_program(const kernel::Host& host, const std::string& version);
bool is_running(const kernel::Host& host, const RunningProgram& program);

// The fields with which each file begins.
document::OrderedJson to_json(const RunningProgram& program);
Result<RunningProgram> parse_program(const document::Json& json, const char* file);

// Replaces the file by rename, in a directory that only root may write.
Result<void> write_run_file(const kernel::Host& host, const std::string& name, const std::string& text);

// The time of a program's file says when the program was last alive: one that hangs has not ended. During an update two
// instances may run: the file is that of the one that wrote it last, until that ends or hangs.
inline constexpr std::chrono::seconds kHeartbeat{20};  // so often at least
// Renews the time of our own file, and leaves that of another instance alone. False where ours is to be written.
bool renew_run_file(const kernel::Host& host, const char* file);
void remove_run_file(const kernel::Host& host, const char* file);  // unless it is that of another instance
bool has_heartbeat(const kernel::Host& host, const char* file);
// Why the program with this name and file is not well; absent where it is.
std::optional<std::string> find_problem(const kernel::Host& host, const char* file, const std::string& name);

// Creates the file, and holds a lock on it as long as the descriptor is open. Fails with device_or_resource_busy,
// "HOLDER runs already (pid N)", where another process has it. A child does not inherit it: it may outlive a daemon
// that is killed.
Result<kernel::Fd> lock_file(int directory, const std::string& name, const std::string& holder);

// Held while a guard runs: two of them would undo each other's repairs, whatever their journals are.
Result<kernel::Fd> lock_host(const kernel::Host& host);
// The guard that runs. Not for a process that holds the lock itself: it would lose it.
std::optional<container::Pid> holder_of_host_lock(const kernel::Host& host);
// Removes the file of the lock, which must be held.
void remove_host_lock(const kernel::Host& host);

// Absent unless the program that wrote the file still runs, and does not hang.
template <class Status>
std::optional<Status> read_run_file(const kernel::Host& host, const char* file,
                                    Result<Status> (*parse)(std::string_view)) {
  const Result<std::string> text = kernel::read_trusted_file(host.root.get(), kernel::below_root(file));
  Result<Status> status = text ? parse(*text) : Result<Status>(std::unexpected(text.error()));
  const bool is_alive = status && is_running(host, status->program) && has_heartbeat(host, file);
  return is_alive ? std::optional(*std::move(status)) : std::nullopt;
}

}  // namespace hf::journal
