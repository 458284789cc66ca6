// ContainerHandle: one running container, held by what the kernel gives to hold: its first process and its cgroups.
// Everything that acts on a container takes this, never a pid or a path: a moment later those may be another's.
#pragma once

#include <memory>
#include <vector>

#include "core/base/result.h"
#include "core/container/container.h"
#include "kernel/cgroup.h"
#include "kernel/host.h"
#include "kernel/process.h"
#include "kernel/sweep.h"

namespace hf::kernel {

class ContainerHandle {
 public:
  // All of it is opened together and checked to belong together. Fails with no_such_process where the container has
  // ended, or another process has its first process's number.
  static Result<ContainerHandle> open(const Host& host, const container::Container& container);

  // Again, after use: is it still the same process, alive, in the same cgroups and mount namespace?
  [[nodiscard]] Result<void> check() const;

  [[nodiscard]] const ProcessHandle& process() const { return process_; }

  // Where its first process is: what decides about its devices, and may be others' as well.
  [[nodiscard]] const CgroupsOfProcess& actual() const { return actual_; }
  [[nodiscard]] CgroupsOfProcess take_actual() && { return std::move(actual_); }
  // Of those, and of the cgroups between, the ones that are the container's own, from the outside in. Only they may be
  // changed; there are none where its process was moved elsewhere.
  [[nodiscard]] const std::vector<CgroupsPtr>& own() const { return own_; }

  // For setns(2) and openat(2). Not kept open: they would keep the container's file systems mounted.
  [[nodiscard]] Result<Fd> open_mount_namespace() const;
  [[nodiscard]] Result<Fd> open_root() const;

 private:
  ContainerHandle() = default;
  Result<void> open_own(const Host& host, const container::Container& container);

  ProcessHandle process_;
  std::int64_t started_ticks_ = 0;
  std::uint64_t mount_namespace_ = 0;
  std::string lines_;  // of /proc/PID/cgroup
  CgroupsOfProcess actual_;
  std::vector<CgroupsPtr> own_;
};

// Owned by whatever guards the container, and by a survey.
using ContainerHandlePtr = std::shared_ptr<const ContainerHandle>;

}  // namespace hf::kernel
