// Process: what /proc tells of the processes of this node.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/container/cgroup_path.h"
#include "core/container/seat.h"
#include "core/device/device.h"
#include "kernel/fd.h"
#include "kernel/host.h"

namespace hf::kernel {

std::vector<container::Pid> list_processes(const Host& host);

struct Process {
  container::Pid pid;
  container::Pid parent;
  std::string name;             // comm
  std::int64_t started_at = 0;  // in clock ticks since boot
};
Result<Process> read_process(const Host& host, container::Pid pid);

// A process held by a descriptor: its number may be another's later. Empty where it has ended.
Fd open_process(container::Pid pid);
bool is_running(const Fd& process);

// Seconds since 1970 of a moment given in clock ticks since boot.
class BootClock {
 public:
  static Result<BootClock> read(const Host& host);
  [[nodiscard]] std::int64_t wall_time(std::int64_t ticks) const;

 private:
  std::int64_t boot_time_ = 0;
};

std::vector<std::string> read_command_line(const Host& host, container::Pid pid);  // empty for a kernel thread
std::string read_cgroup_lines(const Host& host, container::Pid pid);               // "" where it has ended
std::string read_link(const Host& host, const std::string& path);                  // "" where there is none

// The inode of a namespace ("mnt", "pid", "user"), 0 where it cannot be told.
std::uint64_t read_namespace(const Host& host, container::Pid pid, const std::string& kind);
std::uint64_t read_own_namespace(const Host& host, const std::string& kind);

// Is its root folder the host's own?
bool has_our_root(const Host& host, container::Pid pid);

// Is it the first process of a pid namespace that is not ours?
bool is_first_of_its_namespace(const Host& host, container::Pid pid);

struct Rights {
  container::Credentials user;
  std::uint64_t capabilities = 0;
};
Result<Rights> read_rights(const Host& host, container::Pid pid);

// Which processes hold these devices open.
std::map<device::Device, std::vector<container::Pid>> read_holders(const Host& host);

}  // namespace hf::kernel
