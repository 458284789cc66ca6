// Probe: a process that joins a cgroup and asks with access(2) what cannot be read. No device is opened, no driver
// notices.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

#include "core/base/result.h"
#include "core/device/device.h"
#include "kernel/cgroup.h"
#include "kernel/fd.h"

namespace hf::kernel {

class Probe {
 public:
  // Fails where the cgroups cannot be joined: a v2 cgroup that hands controllers to its children takes no processes.
  static Result<Probe> start(const std::vector<const Cgroup*>& cgroups);

  Probe(Probe&& other) noexcept;
  Probe& operator=(Probe&&) = delete;
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe();

  // Requests for m together with other letters are asked letter by letter, as the kernel would.
  Result<bool> ask(const device::Request& request);

 private:
  Probe(pid_t child, Fd questions, Fd directory)
      : child_(child), questions_(std::move(questions)), directory_(std::move(directory)) {}

  pid_t child_;
  Fd questions_;  // a socket pair's end
  Fd directory_;  // for the nodes asked about
};

}  // namespace hf::kernel
