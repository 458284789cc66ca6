// Process: reads the processes of this host from /proc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/cgroup/cgroup_path.h"
#include "core/container/entitlement/node_state.h"
#include "core/device/device.h"
#include "kernel/files/fd.h"
#include "kernel/files/host.h"

namespace hf::kernel {

std::vector<container::Pid> list_processes(const Host& host);

// A process, held by a descriptor of its directory in /proc. Reads through it always refer to this process, even if its
// pid is reused, and fail once it has ended.
struct ProcessHandle {
  container::Pid pid;
  Fd directory;
};
Result<ProcessHandle> hold_process(const Host& host, container::Pid pid);

struct Process {
  container::Pid pid;
  container::Pid parent;
  std::string name;             // comm
  std::int64_t started_at = 0;  // in clock ticks since boot
  bool has_ended = false;       // a zombie: its cgroup and its files may be gone
};
Result<Process> read_process(const Host& host, container::Pid pid);
Result<Process> read_process(const ProcessHandle& process);

// Opens a pidfd, because the pid may be reused later. Empty where the process has ended.
Fd open_process(container::Pid pid);
bool is_running(const Fd& process);

// Converts clock ticks since boot to seconds since 1970.
class BootClock {
 public:
  static Result<BootClock> read(const Host& host);
  [[nodiscard]] std::int64_t wall_time(std::int64_t ticks) const;

 private:
  std::int64_t boot_time_ = 0;
};

// Is it a root process in our user and pid namespaces, with our root directory? Only the memory of such a process is
// read, because another process can make its reader block.
bool is_root_of_host(const Host& host, const ProcessHandle& process);

// The first 4 KiB of the command line; empty for a kernel thread, and where is_root_of_host() is false.
std::vector<std::string> read_command_line(const Host& host, const ProcessHandle& process);
std::vector<std::string> read_command_line(const Host& host, container::Pid pid);

std::string read_cgroup_lines(const Host& host, container::Pid pid);  // "" where it has ended
std::string read_cgroup_lines(const ProcessHandle& process);
std::string read_link(const Host& host, const std::string& path);  // "" where there is none

// The inode of a namespace ("mnt", "pid", "user"), 0 where it cannot be read.
std::uint64_t read_namespace(const Host& host, container::Pid pid, const std::string& kind);
std::uint64_t read_namespace(const ProcessHandle& process, const std::string& kind);
std::uint64_t read_own_namespace(const Host& host, const std::string& kind);
// The mount namespaces of the host: ours and that of pid 1, because a service may have its own.
std::vector<std::uint64_t> read_host_mount_namespaces(const Host& host);

// Is its root directory the host's own?
bool has_our_root(const Host& host, const ProcessHandle& process);

// Is it the first process of a pid namespace that is not ours?
bool is_first_of_its_namespace(const Host& host, container::Pid pid);

struct Rights {
  container::Credentials user;  // the effective one
  std::uint32_t real_uid = 0;
  std::uint64_t capabilities = 0;
};
Result<Rights> read_rights(const Host& host, const ProcessHandle& process);

// Which processes hold devices open. Any user can open a million files, so at most 4,096 descriptors of one process and
// 262,144 of all processes are read.
struct Holders {
  std::map<device::Device, std::vector<container::Pid>> pids;
  bool is_complete = true;
};
Holders read_holders(const Host& host);

}  // namespace hf::kernel
