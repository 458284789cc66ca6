// Event: something on the node that may have taken a right from a container, or changed who is there, and who did it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/container/cgroup_path.h"
#include "core/container/gate.h"

namespace hf::container {

struct Ancestor {
  Pid pid;
  std::string name;  // comm

  friend bool operator==(const Ancestor&, const Ancestor&) = default;
};

// Who changed something. What the kernel told in passing, and what /proc still knew afterwards.
struct Writer {
  Pid pid;              // 0: nobody knows
  std::string name;     // comm
  std::string program;  // its executable; "" where it has ended too soon
  std::string command;  // the command line, words parted by blanks
  std::vector<Ancestor>
      parents;          // the nearest first, up to the first process; without a name: the rest is not read yet
  std::string service;  // whom people know: "kubelet", "dockerd", "systemd", "containerd.service"
  std::vector<std::string> through;  // what stands between it and the service: "containerd-shim", "containerd"
  std::string inside;                // the container it sits in, "" for a process of the host

  [[nodiscard]] bool is_known() const { return pid.value != 0; }
};

// "systemctl (pid 90) for systemd", "runc (pid 812), containerd-shim, containerd, for kubelet", "somebody"
std::string title_of(const Writer& writer);

enum class EventKind : std::uint8_t {
  attach,         // a program came to a cgroup, alone, beside others or instead of one
  detach,         // a program was taken off
  write,          // devices.allow or devices.deny of a v1 cgroup was written
  cgroup_made,    // there may be a new container soon
  cgroup_joined,  // a process has joined one: there may be a new container
  cgroup_gone,    //
  process_gone,   // the first process of a container has ended
  reload,         // systemd has read its units again
  drivers,        // a driver came or went, numbers may have moved
  evidence,       // the ledger, kubelet's checkpoint or a CDI spec has changed
  lost,           // the kernel had no room for all events: look at everything
  found_changed,  // polling found other rules than before: nobody saw who did it
};
std::string to_string(EventKind kind);

struct Event {
  EventKind kind = EventKind::attach;
  Hierarchy hierarchy = Hierarchy::v2;
  std::optional<CgroupId> cgroup;  // absent: any may be meant
  std::uint64_t at = 0;            // nanoseconds of CLOCK_MONOTONIC, when it was done
  Writer writer;
  std::optional<ProgramId> program;   // attached or detached
  std::optional<ProgramId> replaced;  // by `program`
  std::uint32_t flags = 0;            // of BPF_PROG_ATTACH
  std::string text;                   // the file that was written, devices.allow or devices.deny; a cgroup's path
  Pid member;                         // of cgroup_joined: the process
};

}  // namespace hf::container
