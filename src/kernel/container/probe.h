// Probe: a process that joins a cgroup and finds out with access(2) what cannot be read. No device is opened, so no
// driver is involved.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

#include "core/base/result.h"
#include "core/device/device.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/files/fd.h"

namespace hf::kernel {

class Probe {
 public:
  // Fails where the cgroups cannot be joined. Kernel: a v2 cgroup that delegates controllers to its children accepts no
  // processes.
  static Result<Probe> start(const std::vector<const Cgroup*>& cgroups);

  Probe(Probe&& other) noexcept;
  Probe& operator=(Probe&&) = delete;
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe();

  // Requests for m together with other access bits are checked bit by bit, as the kernel would.
  Result<bool> ask(const device::Request& request);

 private:
  Probe(pid_t child, Fd questions, Fd directory)
      : child_(child), questions_(std::move(questions)), directory_(std::move(directory)) {}

  pid_t child_;
  Fd questions_;  // our end of the socket pair
  Fd directory_;  // for the device nodes that are probed
};

}  // namespace hf::kernel
