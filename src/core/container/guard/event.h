// Event: a change on the host that may have taken access from a container, or added or removed a container, and the
// Writer that did it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/container/cgroup/cgroup_path.h"
#include "core/container/gate/gate.h"

namespace hf::container {

struct Ancestor {
  Pid pid;
  std::string name;  // comm

  friend bool operator==(const Ancestor&, const Ancestor&) = default;
};

// The process that changed something, as far as the kernel reported it and /proc still had it afterwards.
struct Writer {
  Pid pid;                           // 0: unknown
  std::string name;                  // comm
  std::string program;               // its executable; "" where the process ended before it was read
  std::string command;               // the command line, arguments separated by spaces
  std::vector<Ancestor> parents;     // the nearest first, up to pid 1; one without a name: the rest is not read yet
  std::string service;               // the service behind it: "kubelet", "dockerd", "systemd", "containerd.service"
  std::vector<std::string> through;  // the processes between it and the service: "containerd-shim", "containerd"
  std::string inside;                // the container it runs in, "" for a process of the host

  [[nodiscard]] bool is_known() const { return pid.value != 0; }
};

// "systemctl (pid 90) for systemd", "runc (pid 812), containerd-shim, containerd, for kubelet", "an unknown process"
std::string title_of(const Writer& writer);
// The same without the pid: of every process that does the same for the same service.
std::string program_title_of(const Writer& writer);

enum class EventKind : std::uint8_t {
  attach,         // a program was attached to a cgroup, alone, beside others or replacing one
  detach,         // a program was detached
  write,          // devices.allow or devices.deny of a v1 cgroup was written
  cgroup_made,    // there may soon be a new container
  cgroup_joined,  // a process joined a cgroup: there may be a new container
  cgroup_gone,
  process_gone,   // the first process of a container has ended
  reload,         // systemd reloaded its units
  drivers,        // a driver was loaded or unloaded: device numbers may have changed
  evidence,       // the ledger, kubelet's checkpoint or a CDI spec has changed
  lost,           // the kernel dropped events: every container must be visited
  found_changed,  // polling found other rules than before: the writer is unknown
};
std::string to_string(EventKind kind);

struct Event {
  EventKind kind = EventKind::attach;
  Hierarchy hierarchy = Hierarchy::v2;
  std::optional<CgroupId> cgroup;  // absent: it may concern any cgroup
  std::uint64_t at = 0;            // when it happened, in nanoseconds of CLOCK_MONOTONIC
  Writer writer;
  std::optional<ProgramId> program;   // attached or detached
  std::optional<ProgramId> replaced;  // by `program`
  std::uint32_t flags = 0;            // of BPF_PROG_ATTACH
  std::string text;                   // of write: devices.allow or devices.deny; of cgroup events: the path
  Pid member;                         // of cgroup_joined: the process that joined
};

}  // namespace hf::container
